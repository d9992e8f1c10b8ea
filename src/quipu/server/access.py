"""Access: keys, what they allow, and how often a key may call.

Without keys, a server listens on loopback only, and everyone on this machine may do everything. As soon as there is a
key, every request needs one: behind a reverse proxy, all requests come from this machine.
"""

import hashlib
import hmac
import json
import mmap
import os
import secrets
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from quipu.atomic_file import replace_atomically
from quipu.errors import Corrupt, InvalidInput, NotFound
from quipu.server.wire import RequestRefused

KEYS_FILE = ".keys.json"  # hidden: it is no document, if somebody adds the folder
COOKIE = "quipu_key"
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_PREFIX = "quipu"
N_BUCKETS = 4_096
Buckets: TypeAlias = "array[float] | memoryview[float]"


class Permission(StrEnum):
    """What a key allows: each value includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Permission") -> bool:
        """Return whether whoever has this permission has the other one, too."""
        order = list(Permission)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """A key as it is stored: `digest` is the SHA-256 of its text, which is shown once and kept nowhere.

    `workspaces` are the names of those it opens, () for all. `expires` is a time in ISO 8601, "" for never.
    """

    id: str
    name: str
    permission: Permission
    digest: str
    created: str
    workspaces: tuple[str, ...] = ()
    expires: str = ""

    def opens(self, workspace: str) -> bool:
        """Return whether the key may be used for a workspace."""
        return not self.workspaces or workspace in self.workspaces


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that was just created, and the only copy of its text."""

    key: AccessKey
    text: str


# Who sends a request where no key is needed: a program on this machine.
LOCAL_CALLER = AccessKey(id="local", name="this machine", permission=Permission.ADMIN, digest="", created="")
NOBODY = AccessKey(id="", name="", permission=Permission.READ, digest="", created="")  # calls what needs no key
_KEYS = TypeAdapter(tuple[AccessKey, ...])


class KeyFile:
    """The keys of a server, in a file that only its owner can read. A change counts from the next request on."""

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._now = now
        self._read_at: tuple[int, int] | None = None  # time of change and size of the file
        self._keys: Mapping[str, AccessKey] = {}

    def keys(self) -> Mapping[str, AccessKey]:
        """Return the keys by id. Raises Corrupt for a file that was not written by `quipu keys`."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._read_at, self._keys = None, {}
            return self._keys
        if self._read_at != (status.st_mtime_ns, status.st_size):
            try:
                self._keys = {key.id: key for key in _KEYS.validate_json(self._path.read_bytes())}
            except ValidationError as error:
                raise Corrupt(
                    f"The file of keys {self._path.name} cannot be read.",
                    remedy="Restore it, or delete it and make new keys.",
                ) from error
            self._read_at = status.st_mtime_ns, status.st_size
        return self._keys

    def create(
        self,
        name: str,
        permission: Permission,
        workspaces: tuple[str, ...] = (),
        expires: str = "",
    ) -> NewKey:
        """Add a key of 256 random bits, and return its text. Raises InvalidInput for a time that is none."""
        id_, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        text = f"{_PREFIX}_{id_}_{secret}"
        key = AccessKey(
            id=id_,
            name=name,
            permission=permission,
            digest=_digest(text),
            created=self._now().isoformat(timespec="seconds"),
            workspaces=workspaces,
            expires=_as_time(expires).isoformat(timespec="seconds") if expires else "",
        )
        self._write({**self.keys(), id_: key})
        return NewKey(key=key, text=text)

    def revoke(self, id_: str) -> AccessKey:
        """Remove a key. Raises NotFound for an unknown id."""
        keys = dict(self.keys())
        if id_ not in keys:
            raise NotFound(f"There is no key {id_!r}.", remedy="`quipu keys list` shows the ids of all keys.")
        key = keys.pop(id_)
        self._write(keys)
        return key

    def holder(self, text: str) -> AccessKey | None:
        """Return the key with this text, None if there is none or it has expired."""
        _, _, rest = text.partition("_")
        key = self.keys().get(rest.partition("_")[0])
        if not hmac.compare_digest(_digest(text), key.digest if key else "") or key is None:
            return None
        return None if key.expires and _as_time(key.expires) <= self._now() else key

    def _write(self, keys: Mapping[str, AccessKey]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with replace_atomically(self._path, unfinished) as file:
            file.write(json.dumps([asdict(key) for key in keys.values()], indent=2).encode())


class RateLimit:
    """A token bucket for each sender: `per_minute` calls a minute, and as many at once as a tenth of that.

    The buckets are numbers in `full_at`: the time in seconds when a bucket will be full again (GCRA). Processes that
    share this memory share the limit. Senders whose names fall on the same number share a bucket.
    """

    def __init__(
        self,
        per_minute: float,
        full_at: "Buckets | None" = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._interval_s = 60 / per_minute
        self._burst_s = max(6.0, self._interval_s)
        self._full_at = full_at if full_at is not None else array("d", bytes(8 * N_BUCKETS))
        self._now = now

    def check(self, sender: str) -> None:
        """Count a call. Raises RequestRefused (429), with the time to wait, if the bucket is empty."""
        now = self._now()
        bucket = int.from_bytes(hashlib.sha256(sender.encode()).digest()[:4]) % len(self._full_at)
        full_at = max(self._full_at[bucket], now) + self._interval_s
        wait_s = full_at - now - self._burst_s
        if wait_s > 1e-9:
            raise RequestRefused(
                429,
                f"More than {60 / self._interval_s:,.0f} calls a minute.",
                remedy=f"Try again in {max(wait_s, 1):.0f} seconds.",
                headers={"retry-after": f"{max(wait_s, 1):.0f}"},
            )
        self._full_at[bucket] = full_at


def shared_buckets(path: Path) -> tuple[Buckets, Buckets]:
    """Return the buckets of calls and of failures, in a file that all processes of a server map into their memory."""
    size = 2 * 8 * N_BUCKETS
    with path.open("ab") as file:
        file.truncate(size)
    with path.open("r+b") as file:
        numbers = memoryview(mmap.mmap(file.fileno(), size)).cast("d")
    return numbers[:N_BUCKETS], numbers[N_BUCKETS:]


class OpenRequests:
    """Counts the requests of each sender that are open now, streams too, so that others find a connection."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._n_by_sender: Counter[str] = Counter()

    @contextmanager
    def counted(self, sender: str) -> Iterator[None]:
        """Count a request during the block. Raises RequestRefused (429) where the sender has too many open."""
        if self._n_by_sender[sender] >= self._most:
            raise RequestRefused(
                429,
                f"More than {self._most:,} requests of this key are open at once.",
                remedy="Wait for replies, or close streams.",
                headers={"retry-after": "1"},
            )
        self._n_by_sender[sender] += 1
        try:
            yield
        finally:
            self._n_by_sender[sender] -= 1
            if not self._n_by_sender[sender]:
                del self._n_by_sender[sender]


class Access:
    """Decides who may call: the holder of a key, or everybody where `is_open` is set and there has been no key yet."""

    def __init__(self, keys: KeyFile, *, is_open: bool, calls: RateLimit, failures: RateLimit) -> None:
        self._keys = keys
        self._is_open = is_open
        self._calls = calls
        self._failures = failures

    @property
    def has_keys(self) -> bool:
        """Whether there is a key."""
        return bool(self._keys.keys())

    def caller(self, request: Request) -> AccessKey:
        """Return the key of a request. Raises RequestRefused for a wrong one, and where one is missing."""
        return self.holder(_bearer(request) or request.cookies.get(COOKIE, ""), request)

    def holder(self, text: str, request: Request) -> AccessKey:
        """Return the key with this text, which a request holds; raises as `caller` does."""
        self._is_open = self._is_open and not self._keys.keys()  # a server that had keys never opens to everybody
        if self._is_open:
            return LOCAL_CALLER
        key = self._keys.holder(text)
        if key is None:
            self._failures.check(request.client.host if request.client else "")
            raise RequestRefused(
                401,
                "The key is wrong or has expired." if text else "This needs a key.",
                remedy="Send it as the header Authorization: Bearer KEY; `quipu keys create` makes one.",
                headers={"www-authenticate": "Bearer"},
            )
        self._calls.check(key.id)
        return key

    def check(self, caller: AccessKey, permission: Permission, workspace: str) -> None:
        """Raise RequestRefused if a key does not allow an operation, or does not open the workspace ("": none).

        A workspace that a key does not open looks as one that does not exist.
        """
        if workspace and not caller.opens(workspace):
            raise unknown_workspace(workspace)
        if not caller.permission.includes(permission):
            raise RequestRefused(
                403, f"This needs the permission {permission.value!r}.", remedy="Use a key that has it."
            )


def check_origin(request: Request) -> None:
    """Raise RequestRefused if a page of another site sends a change: a browser adds cookies to it by itself."""
    if request.method in _SAFE_METHODS:
        return
    origin = request.headers.get("origin")
    is_foreign = origin is not None and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    if is_foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise RequestRefused(403, "A page of another site sent this.", remedy="Call the API from a program.")


def unknown_workspace(name: str) -> NotFound:
    """Return the error for a workspace that does not exist, or that a key does not open: nobody learns which."""
    return NotFound(f"There is no workspace {name!r}.", remedy="GET /api/v1/workspaces lists those there are.")


def without_secret(key: AccessKey) -> AccessKey:
    """Return a key without its digest, to be shown."""
    return replace(key, digest="")


def _bearer(request: Request) -> str:
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _as_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a time.", remedy="Write 2027-01-31 or 2027-01-31T12:00.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
