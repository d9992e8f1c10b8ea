"""Tests of an engine whose files are read by a server."""

import json
from pathlib import Path

import pytest

import quipu
from quipu.errors import InvalidInput
from quipu.model.document import DocumentStatus
from tests.unit.parse.test_remote import DOCLING, PDF, Server
from tests.unit.parse.test_remote import server as _server

parser_server = _server


def settings(tmp_path: Path, url: str, suffixes: str = "pdf png") -> dict[str, str]:
    (tmp_path / "docs").mkdir(exist_ok=True)
    (tmp_path / "docs" / "a.pdf").write_bytes(PDF)
    (tmp_path / "docs" / "b.png").write_bytes(b"\x89PNG")
    (tmp_path / "docs" / "c.md").write_text("# Paper\n\nPaper came from China.")
    return {"parser": "docling", "parser_url": url, "parser_suffixes": suffixes}


async def test_named_files_are_read_by_the_server_and_others_here(tmp_path: Path, parser_server: Server) -> None:
    parser_server.script.body = json.dumps(DOCLING).encode()
    names = settings(tmp_path, parser_server.url)
    async with quipu.open(tmp_path / "index", **names) as kb:
        assert (await kb.add(tmp_path / "docs")).n_added == 3
        assert "Murano" in await kb.text("docs/b.png")
        assert "China" in await kb.text("docs/c.md")
        assert (await kb.add(tmp_path / "docs")).n_unchanged == 3
    assert [form["files"] for *_, form in parser_server.script.requests] == [PDF, b"\x89PNG"]


async def test_while_the_server_is_gone_documents_wait(tmp_path: Path, parser_server: Server) -> None:
    names = settings(tmp_path, "http://127.0.0.1:9")
    async with quipu.open(tmp_path / "index", **names) as kb:
        result = await kb.add(tmp_path / "docs")
        assert "does not answer at http://127.0.0.1:9" in result.stopped
        statuses = {document.id: document.status for document in await kb.documents()}
        assert statuses["docs/a.pdf"] is DocumentStatus.QUEUED
    parser_server.script.body = json.dumps(DOCLING).encode()
    async with quipu.open(tmp_path / "index", **names | {"parser_url": parser_server.url}) as kb:
        assert (await kb.resume()).n_resumed == 3


@pytest.mark.parametrize(("name", "value"), [("parser_url", None), ("parser_suffixes", "pdf xyz")])
def test_a_server_without_address_and_an_unknown_suffix_leave_no_index(
    tmp_path: Path, name: str, value: str | None
) -> None:
    names = {**settings(tmp_path, "http://127.0.0.1:9"), name: value}
    with pytest.raises(InvalidInput) as caught:
        quipu.sync.open(tmp_path / "index", **names)
    assert caught.value.remedy
    assert not (tmp_path / "index").exists()
