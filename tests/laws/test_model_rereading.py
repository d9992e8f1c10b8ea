"""A document that has not changed stays as it was read, whatever is set now, until that is asked for."""

from pathlib import Path
from typing import Any

import pytest

from quipu.model.document import SourceDocument
from quipu.settings import Settings
from quipu.testing.server.process import ServerHandle
from tests.laws.model_world import dump_of, fresh_dump, model_engine, model_settings, script, travels

NAMES = ("a.md", "b.md", "c.md")
MODEL, RULES = "model", "rules"


def _documents(version: int = 0) -> list[SourceDocument]:
    return [travels(name, version, n_sentences=1) for name in NAMES]


def _by(reader: str, folder: Path, server: ServerHandle, **values: Any) -> Settings:
    """Return the settings of one who has documents read by a model, or by rules though a model is there to answer."""
    chosen = {"extractor": "local"} if reader == RULES else {}
    return model_settings(folder, server.base_url, **chosen, **values)


def _named(reader: str, server: ServerHandle) -> str:
    """Return what output calls it."""
    host = server.address.removeprefix("http://")
    return "local rules, no language model" if reader == RULES else f"language model custom({host})/scripted"


async def _n_extractions(settings: Settings) -> int:
    async with model_engine(settings) as kb:
        return sum(row.n_calls for row in await kb.usage() if row.stage == "extract" and row.subject)


@pytest.mark.parametrize(("then", "now"), [(MODEL, RULES), (RULES, MODEL)])
async def test_what_another_has_read_stays_and_asks_nobody(
    tmp_path: Path, server: ServerHandle, then: str, now: str
) -> None:
    server.configure(script())
    before, after = _by(then, tmp_path / "kb", server), _by(now, tmp_path / "kb", server)
    then, now = _named(then, server), _named(now, server)
    async with model_engine(before) as kb:
        await kb.add(*_documents())
        dump = await dump_of(kb)
    n_asked = server.settled().total().n_completed
    async with model_engine(after) as kb:
        told = await kb.estimate(*_documents())
        report = await kb.add(*_documents())
        status = await kb.status()
        assert await dump_of(kb) == dump
    assert (told.n_documents, told.n_unchanged, told.n_other_extractor) == (0, 3, 3)
    assert (told.other_extractors, told.extractor) == ((then,), now)
    assert (report.n_added, report.n_updated, report.n_unchanged, report.n_other_extractor) == (0, 0, 3, 3)
    assert (report.other_extractors, report.extractors, report.extractor) == ((then,), ((then, 3),), now)
    assert status.extractors == ((then, 3),)
    assert server.settled().total().n_completed == n_asked


async def test_going_back_costs_nothing_even_after_a_purge(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(script())
    paid, free = (_by(reader, tmp_path / "kb", server) for reader in (MODEL, RULES))
    async with model_engine(paid) as kb:
        await kb.add(*_documents())
    async with model_engine(free) as kb:
        await kb.add(*_documents())
        await kb.purge()
    n_asked = await _n_extractions(paid)
    async with model_engine(paid) as kb:
        report = await kb.add(*_documents())
        assert (report.n_unchanged, report.n_other_extractor) == (3, 0)
    assert 0 < await _n_extractions(paid) == n_asked


@pytest.mark.parametrize(("then", "now"), [(MODEL, RULES), (RULES, MODEL)])
async def test_read_again_an_index_is_as_one_made_anew(
    tmp_path: Path, server: ServerHandle, then: str, now: str
) -> None:
    server.configure(script())
    async with model_engine(_by(then, tmp_path / "kb", server)) as kb:
        await kb.add(*_documents())
    async with model_engine(_by(now, tmp_path / "kb", server)) as kb:
        assert (await kb.estimate(*_documents(), reread=True)).n_documents == 3
        report = await kb.add(*_documents(), reread=True)
        assert (report.n_updated, report.n_other_extractor, report.extractors) == (3, 0, ((_named(now, server), 3),))
        assert await dump_of(kb) == await fresh_dump(_by(now, tmp_path / "new", server), *_documents())
        assert await kb.verify() == []
        assert (await kb.add(*_documents(), reread=True)).n_unchanged == 3  # they are by now what is set


async def test_other_settings_of_the_same_model_are_another_reading(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(script())
    glossary = tmp_path / "glossary.yaml"
    glossary.write_text("Marco Polo: a merchant of Venice\n")
    told = _by(MODEL, tmp_path / "kb", server, glossary=glossary)
    async with model_engine(_by(MODEL, tmp_path / "kb", server)) as kb:
        await kb.add(*_documents())
    async with model_engine(told) as kb:
        left = await kb.add(*_documents())
        assert (left.n_unchanged, left.n_other_extractor, left.other_extractors) == (3, 3, (_named(MODEL, server),))
        assert (await kb.add(*_documents(), reread=True)).n_updated == 3
        anew = await fresh_dump(_by(MODEL, tmp_path / "new", server, glossary=glossary), *_documents())
        assert await dump_of(kb) == anew


async def test_what_changed_is_read_by_what_is_set_and_nothing_else(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(script())
    changed = [travels("a.md", 1, n_sentences=1), *_documents()[1:]]
    async with model_engine(_by(MODEL, tmp_path / "kb", server)) as kb:
        await kb.add(*_documents())
    async with model_engine(_by(RULES, tmp_path / "kb", server)) as kb:
        report = await kb.add(*changed)
        readers = {each.id: each.extractor for each in await kb.documents()}
    assert (report.n_updated, report.n_unchanged, report.n_other_extractor) == (1, 2, 2)
    rules, model = _named(RULES, server), _named(MODEL, server)
    assert readers == {"a.md": rules, "b.md": model, "c.md": model}
    assert dict(report.extractors) == {rules: 1, model: 2}


async def test_a_document_cut_in_another_way_has_changed(tmp_path: Path, server: ServerHandle) -> None:
    server.configure(script())
    async with model_engine(_by(MODEL, tmp_path / "kb", server)) as kb:
        await kb.add(*_documents())
    async with model_engine(_by(RULES, tmp_path / "kb", server, chunk_tokens=48)) as kb:
        report = await kb.add(*_documents())
        assert (report.n_updated, report.n_unchanged) == (3, 0)
