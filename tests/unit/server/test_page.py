"""The web page: its files, how long a browser keeps them, and what stands there without a build."""

import gzip
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from quipu.engine.graph_export import FORMATS
from quipu.server import ServerComponents, Workspaces
from quipu.server.app import make_app
from quipu.server.components import Page

ROOT = Path(__file__).resolve().parents[3]
BROWSER = {"accept": "text/html,*/*"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    web = tmp_path / "web"
    (web / "assets").mkdir(parents=True)
    (web / "index.html").write_text("<!doctype html><title>Quipu</title>", encoding="utf-8")
    (web / "icon.svg").write_text("<svg/>", encoding="utf-8")
    (web / "assets" / "index-1.js").write_text("export {}", encoding="utf-8")
    (web / "assets" / "index-1.js.gz").write_bytes(gzip.compress(b"export {}"))
    return web


def _client(tmp_path: Path, page: Page) -> httpx.AsyncClient:
    server = replace(ServerComponents.of(Workspaces(index=tmp_path / "index")), page=page)
    return httpx.AsyncClient(transport=httpx.ASGITransport(make_app(server)), base_url="http://localhost")


@pytest.fixture
async def client(tmp_path: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with _client(tmp_path, Page(folder)) as client:
        yield client


async def test_a_browser_gets_the_page_and_a_program_a_line_of_text(client: httpx.AsyncClient) -> None:
    page = await client.get("/", headers=BROWSER)
    assert page.text == "<!doctype html><title>Quipu</title>"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert (await client.get("/")).text.startswith("Quipu is running.")


async def test_an_asset_is_sent_compressed_and_kept_for_ever(client: httpx.AsyncClient) -> None:
    asset = await client.get("/assets/index-1.js")
    assert asset.text == "export {}"
    assert asset.headers["content-encoding"] == "gzip"
    assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in asset.headers["cache-control"]
    plain = await client.get("/icon.svg", headers={"accept-encoding": "identity"})
    assert (plain.text, plain.headers.get("content-encoding")) == ("<svg/>", None)
    assert "immutable" not in plain.headers["cache-control"]


@pytest.mark.parametrize("path", ["/assets/../../index.sqlite", "/assets/%2e%2e/x", "/index.html", "/assets/", "/x.js"])
async def test_no_other_file_can_be_asked_for(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path, headers=BROWSER)).status_code == 404


async def test_without_a_build_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    async with _client(tmp_path, Page(tmp_path / "nothing")) as client:
        assert "make ui" in (await client.get("/", headers=BROWSER)).text


def test_the_page_offers_every_format_of_an_export() -> None:
    view = (ROOT / "ui/src/pages/graph.tsx").read_text("utf-8")
    [listed] = re.findall(r"const FORMATS.*?= \{(.*?)\};", view, re.DOTALL)
    assert re.findall(r"(\w+): \"", listed) == list(FORMATS)
