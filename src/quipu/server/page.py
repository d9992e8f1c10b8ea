"""Page: the files of the web page, which `make ui` builds into the folder `web`. They are the same for everybody."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

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
