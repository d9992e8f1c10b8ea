"""Tests of opening: what is found wrong before there is an index, and what an index knows without asking."""

import sys
from importlib.machinery import ModuleSpec
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from quipu.engine import Quipu
from quipu.errors import InvalidInput, Stale, Unavailable
from quipu.model.derivation import DerivationResult, Freshness
from quipu.model.query import Budget
from quipu.settings import Settings
from quipu.testing.scripted.script import RequestKind
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
    assert server.stats().total(RequestKind.EMBED).n_completed == 0


async def test_that_of_another_model_is_asked_for(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server)) as kb:
        await kb.add_text("Alice Kober taught classics.", id="kober")
    server.reset()
    async with await open_engine(_settings(tmp_path, server, model="custom/other"), repair=True):
        pass
    assert server.stats().total(RequestKind.EMBED).n_completed == 1


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


class _OfTwo:
    """Stands in for scikit-learn's mixture: vectors are of two kinds, by their first number."""

    def __init__(self, n_components: int, **_: object) -> None:
        self._n = n_components

    def fit(self, _vectors: npt.NDArray[np.float64]) -> "_OfTwo":
        return self

    def bic(self, _vectors: npt.NDArray[np.float64]) -> float:
        return abs(self._n - 2.0)

    def predict(self, vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        return (vectors[:, 0] > 0).astype(np.int64)


@pytest.fixture
def mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have scikit-learn installed, as far as it is used."""
    package, module = ModuleType("sklearn"), ModuleType("sklearn.mixture")
    package.__spec__, module.GaussianMixture = ModuleSpec("sklearn", None), _OfTwo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sklearn", package)
    monkeypatch.setitem(sys.modules, "sklearn.mixture", module)


@pytest.mark.usefixtures("mixture")
async def test_the_grouping_that_is_set_is_what_the_hierarchy_is_made_by(tmp_path: Path) -> None:
    names = [f"{town} {kind}" for town in ("Alba", "Bari", "Corfu", "Delos") for kind in ("Light", "Road", "Gate")]
    text = " ".join(f"Captain {one} met Clerk {other}." for one, other in pairwise(names))
    settings = Settings(index=tmp_path / "kb")
    async with await open_engine(settings) as kb:
        await kb.add_text(text, id="a")
        await kb.refresh(["hierarchy"])
    async with await open_engine(Settings(index=tmp_path / "kb", hierarchy_grouping="mixture")) as kb:
        assert await _freshness(kb) is Freshness.STALE
        await kb.refresh()
        assert await _freshness(kb) is Freshness.FRESH
        async with kb._store.view() as view:
            assert "gaussian_mixture" in (await view.derivations())["hierarchy"].identity
    async with await open_engine(settings) as kb:
        assert await _freshness(kb) is Freshness.STALE


async def _freshness(kb: Quipu) -> Freshness:
    return {each.name: each.freshness for each in (await kb.status()).derivations}["hierarchy"]


@pytest.fixture
def _no_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)


@pytest.mark.usefixtures("_no_mixture")
async def test_a_grouping_whose_library_is_missing_is_told_before_anything_is_asked_or_made(
    tmp_path: Path, server: ServerHandle
) -> None:
    settings = Settings(
        index=tmp_path / "kb", llm="custom/own", llm_base_url=server.base_url, hierarchy_grouping="mixture"
    )
    async with await open_engine(settings) as kb:
        await kb.add_text("Ann met Bo.", id="a")
        server.reset()
        for refreshed in (kb.refresh(["reports", "hierarchy"]), kb.query("Who?", strategy="lca", auto_refresh=True)):
            with pytest.raises(Unavailable, match="scikit-learn is not installed") as caught:
                await refreshed
            assert "pip install 'quipu-rag[mixture]'" in caught.value.remedy
            assert "hierarchy_grouping" in caught.value.remedy
        with pytest.raises(Stale, match="needs derivations that are missing: hierarchy") as stale:
            await kb.query("Who?", strategy="lca")
        assert stale.value.remedy.startswith("scikit-learn is not installed")
        assert "Then run `quipu refresh hierarchy`" in stale.value.remedy
        assert server.stats().requests == ()
        assert {
            each.freshness for each in (await kb.status()).derivations if each.name in ("reports", "hierarchy")
        } == {Freshness.MISSING}


@pytest.mark.usefixtures("_no_mixture")
async def test_a_grouping_whose_library_is_missing_stops_nothing_but_the_hierarchy(tmp_path: Path) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add_text("Captain Ann Lee met Clerk Bo Li in Delos.", id="a")
        await kb.refresh(["hierarchy", "reports"])
    async with await open_engine(Settings(index=tmp_path / "kb", hierarchy_grouping="mixture")) as kb:
        hindered = {
            each.name: each.unavailable_reason for each in (await kb.status()).derivations if each.unavailable_reason
        }
        assert list(hindered) == ["hierarchy"]
        assert "quipu-rag[mixture]" in hindered["hierarchy"]
        added = await kb.add_text("Captain Ann Lee met Clerk Cy Fox in Corfu.", id="b")
        assert added.n_added == 1
        assert (added.stopped, [each.stopped for each in added.derivations]) == ("", ["", "", ""])
        *_, left = added.derivations
        assert left == DerivationResult(name="hierarchy", notes=(f"left as it was: {hindered['hierarchy']}",))
        assert (await kb.resume()).derivations[-1] == left
        assert (await kb.query("Whom did Ann Lee meet in Corfu?")).citations
        (stale,) = (await kb.query("Whom did Ann Lee meet?", strategy="lca")).trace.stale
        assert stale == f"not up to date: hierarchy (1 to do); {hindered['hierarchy']}"
        refreshed = await kb.refresh(["reports"])
        assert refreshed.derivations[-1] == left
        assert refreshed.is_complete
        compared = await kb.compare("Whom did Ann Lee meet?", ["mix", "lca"])
        assert [row.error for row in compared.results] == ["", ""]


async def test_contexts_are_counted_by_the_tokenizer_of_the_settings_and_chunks_are_not(tmp_path: Path) -> None:
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    text = "Alice Kober classified inflectional endings systematically. " * 200
    contexts: list[str] = []
    dumps: list[list[str]] = []
    for name in ("bytes", str(tmp_path / "tokenizer.json")):
        settings = Settings(index=tmp_path / f"kb{len(dumps)}", tokenizer=name)
        async with await open_engine(settings) as kb:
            await kb.add_text(text, id="kober")
            answer = await kb.query("What did Alice Kober classify?", strategy="lexical", budget=Budget(total=1_500))
            contexts.append(answer.context)
            dumps.append([line async for line in kb.dump()])
    assert dumps[0] == dumps[1]
    assert len(contexts[1]) > len(contexts[0])  # a word is more than four bytes


async def test_a_tokenizer_that_cannot_be_read_leaves_no_index(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no tokenizer\.json"):
        await open_engine(Settings(index=tmp_path / "kb", tokenizer=str(tmp_path / "missing.json")))
    assert not (tmp_path / "kb").exists()
