"""Tests of opening: what is found wrong before there is an index, and what an index knows without asking."""

from pathlib import Path

import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.settings import Settings
from quipu.testing.scripted.kind import Kind
from quipu.testing.server import ServerHandle, serving
from quipu.wiring import open_engine


def _settings(folder: Path, server: ServerHandle, *, model: str = "custom/words") -> Settings:
    return Settings(index=folder / "kb", embedder="openai", embedder_model=model, embedder_base_url=server.base_url)


async def test_a_dimension_the_index_knows_is_not_asked_for(tmp_path: Path, server: ServerHandle) -> None:
    settings = _settings(tmp_path, server)
    async with await open_engine(settings) as kb:
        await kb.add_text("Alice Kober taught classics.", id="kober")
        dimension = (await kb.status()).dimension
    server.reset()
    async with await open_engine(settings) as kb:
        assert (await kb.status()).dimension == dimension > 0
    assert server.stats().total(Kind.EMBED).n_completed == 0


async def test_that_of_another_model_is_asked_for(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server)) as kb:
        await kb.add_text("Alice Kober taught classics.", id="kober")
    server.reset()
    async with await open_engine(_settings(tmp_path, server, model="custom/other"), repair=True):
        pass
    assert server.stats().total(Kind.EMBED).n_completed == 1


async def test_an_index_opens_though_the_server_of_its_embedder_is_gone(tmp_path: Path) -> None:
    with serving() as gone:
        settings = _settings(tmp_path, gone)
        async with await open_engine(settings) as kb:
            await kb.add_text("Alice Kober taught classics.", id="kober")
    async with await open_engine(settings) as kb:
        assert (await kb.status()).n_documents == 1


async def test_without_an_index_a_server_that_is_gone_leaves_none_behind(tmp_path: Path) -> None:
    with serving() as gone:
        settings = _settings(tmp_path, gone)
    with pytest.raises(Unavailable):
        await open_engine(settings)
    assert not (tmp_path / "kb").exists()


@pytest.mark.parametrize("name", ["ontology", "glossary"])
async def test_a_wrong_file_for_the_model_that_reads_leaves_no_index_behind(
    tmp_path: Path, server: ServerHandle, name: str
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("entity_types: 7\nterms: 7\nnonsense: 7\n")
    settings = Settings(index=tmp_path / "kb", llm="custom/own", llm_base_url=server.base_url, **{name: wrong})
    with pytest.raises(InvalidInput, match=r"wrong\.yaml"):
        await open_engine(settings)
    assert not (tmp_path / "kb").exists()
