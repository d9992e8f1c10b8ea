"""Components: what all requests of a server share, among it the page: the files that `make ui` builds into `web`."""

import gzip
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quipu.errors import QuipuError
from quipu.server.access import KEYS_FILE, Access, KeyFile, OpenRequests, RateLimit, shared_buckets
from quipu.server.events import Watches
from quipu.server.job_process import JobProcess
from quipu.server.job_runners import JobRunners
from quipu.server.metrics import Metrics
from quipu.server.wire import Problem, RequestRefused, problem_of
from quipu.server.workspaces import Workspaces

_log = logging.getLogger(__name__)

WEB_FOLDER = Path(__file__).parent / "web"
_INDEX = "index.html"
_FOR_EVER, _AN_HOUR = "public, max-age=31536000, immutable", "public, max-age=3600"
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Quipu</title>
<h1>Quipu is running</h1>
<p>The web page is not part of this checkout. Build it once, with Node.js 20 or newer, then start the server again:</p>
<pre>make ui</pre>
<p>The API does not need it: <a href="api/v1/openapi.json">api/v1/openapi.json</a> describes it.</p></html>
"""


# A sub-path of a reverse proxy. None of the server's own paths may begin so: nobody could tell the two apart.
_PREFIX = re.compile(
    r"(?!/(?:api|v1|mcp|assets|health|ready|metrics)(?:/|$))(?:/[A-Za-z0-9][A-Za-z0-9._~-]{0,62}){1,4}"
)


def is_prefix(text: str) -> bool:
    """Return whether a text can be the sub-path below which a server answers, as in "/quipu"."""
    return _PREFIX.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page: its bytes, compressed with gzip and as they are, and its media type."""

    content: bytes
    compressed: bytes
    media_type: str


class Page:
    """The files of the web page in a folder, by their path. Without a build, the page says how to make one."""

    def __init__(self, folder: Path = WEB_FOLDER) -> None:
        self._files = _files_in(folder)

    @property
    def is_built(self) -> bool:
        """Whether there is a page."""
        return _INDEX in self._files

    def index(self, request: Request) -> Response:
        """Return the page itself. A browser asks for it each time, so that it never shows an old one."""
        if not self.is_built:
            return Response(_NOT_BUILT, media_type="text/html; charset=utf-8")
        return _response(self._files[_INDEX], request, "no-store")

    def routes(self) -> list[Route]:
        """Return a route for each other file. The name of an asset changes with its content: it is kept for ever."""
        return [
            Route(f"/{name}", partial(_send_file, file=file, age=_FOR_EVER if "assets/" in name else _AN_HOUR))
            for name, file in self._files.items()
            if name != _INDEX
        ]


async def _send_file(request: Request, *, file: PageFile, age: str) -> Response:
    return _response(file, request, age)


def _response(file: PageFile, request: Request, age: str) -> Response:
    headers = {"cache-control": age, "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.content, headers=headers, media_type=file.media_type)
    return Response(file.compressed, headers=headers | {"content-encoding": "gzip"}, media_type=file.media_type)


def _files_in(folder: Path) -> Mapping[str, PageFile]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _MEDIA_TYPES)
    return {path.relative_to(folder).as_posix(): _file(path) for path in paths}


def _file(path: Path) -> PageFile:
    content, packed = path.read_bytes(), path.with_name(f"{path.name}.gz")
    compressed = packed.read_bytes() if packed.exists() else gzip.compress(content, mtime=0)
    return PageFile(content, compressed, f"{_MEDIA_TYPES[path.suffix]}; charset=utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a server listens and what it allows. `hosts` are the names in Host headers that it answers to.

    `prefix` is the sub-path below which clients reach it, as in "/quipu"; "" for none, or as X-Forwarded-Prefix says.
    `calls_per_minute` is the limit of each key, `failures_per_minute` that of wrong keys from one address. A process
    has at most `max_connections`, and a key `max_open_requests` of them at once. A body must
    arrive within `body_s` seconds, and a reply that is not streamed must be ready after `reply_s`. When the server is
    asked to end, open streams have `graceful_s`. With `log_json`, every request is logged on stderr as a line of JSON.
    With `mcp_may_write`, a tool may change documents for a key that may. With `work_apart`, the work of jobs and large
    uploads is done in a process of its own.
    """

    host: str = "127.0.0.1"
    prefix: str = ""
    port: int = 8787
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    max_body_bytes: int = 1 << 20
    max_upload_bytes: int = 100 << 20
    calls_per_minute: float = 6_000
    failures_per_minute: float = 60
    max_connections: int = 2_000
    max_open_requests: int = 1_000
    body_s: float = 30
    reply_s: float = 600
    graceful_s: int = 5
    log_json: bool = False
    work_apart: bool = False
    mcp_may_write: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return self.host in ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerComponents:
    """What serves requests: the workspaces, who may use them, the web page, and the options of the server."""

    workspaces: Workspaces
    access: Access
    jobs: JobRunners
    watches: Watches
    open_requests: OpenRequests
    job_process: JobProcess | None = None
    metrics: Metrics = field(default_factory=Metrics)
    page: Page = field(default_factory=Page)
    options: ServerOptions = field(default_factory=ServerOptions)

    @classmethod
    def of(cls, workspaces: Workspaces, options: ServerOptions | None = None, counts: Path | None = None) -> Self:
        """Return the components of a server of these workspaces; its keys are in the folder of the workspaces.

        `counts` is the file in which several processes count calls together.
        """
        options = options or ServerOptions()
        calls, failures = shared_buckets(counts) if counts else (None, None)
        access = Access(
            KeyFile(workspaces.folder / KEYS_FILE),
            is_open=options.is_loopback,
            calls=RateLimit(options.calls_per_minute, calls),
            failures=RateLimit(options.failures_per_minute, failures),
        )
        job_process = JobProcess() if options.work_apart else None
        return cls(
            workspaces=workspaces,
            access=access,
            jobs=JobRunners(workspaces, job_process.work if job_process else None),
            watches=Watches(workspaces),
            open_requests=OpenRequests(options.max_open_requests),
            job_process=job_process,
            options=options,
        )

    def problem(self, error: Exception, request: Request) -> Problem:
        """Return what the sender of a request may know about an error."""
        problem = problem_of(error, request.scope.get("request_id", ""))
        without_paths = self.workspaces.without_paths
        return replace(problem, detail=without_paths(problem.detail), remedy=without_paths(problem.remedy))

    def report(self, error: Exception, request: Request) -> None:
        """Log an error that nobody raised on purpose, without anything of the request but its id."""
        if not isinstance(error, QuipuError | RequestRefused | ValidationError):
            _log.error("request %s failed", request.scope.get("request_id", ""), exc_info=error)
