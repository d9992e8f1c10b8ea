"""The adapter of sentence-transformers, with a fake of the library."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from quipu.errors import Unavailable
from quipu.providers.pretrained import open_sentence_transformers
from tests.unit.providers.pretrained_fakes import WEIGHTS, SentenceTransformer

Install = Callable[..., list[SentenceTransformer]]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what puts a fake library in place of the one that is not installed, and the models it then loads."""

    def install(**options: object) -> list[SentenceTransformer]:
        loaded: list[SentenceTransformer] = []

        def load(name: str, revision: str | None = None) -> SentenceTransformer:
            loaded.append(SentenceTransformer(name, revision, **options))  # type: ignore[arg-type]
            return loaded[-1]

        library = ModuleType("sentence_transformers")
        library.SentenceTransformer = load  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "sentence_transformers", library)
        return loaded

    return install


async def test_texts_are_asked_for_one_at_a_time(install: Install) -> None:
    (loaded := install()).clear()
    embedder = open_sentence_transformers("some/model")
    await embedder.embed(["a", "b"])
    await embedder.embed_queries(["c"])
    assert loaded[0].asked[1:] == [("document", ["a", "b"], 1), ("query", ["c"], 1)]


async def test_e5_gets_its_prefixes(install: Install) -> None:
    loaded = install()
    embedder = open_sentence_transformers("intfloat/multilingual-e5-small")
    await embedder.embed(["a"])
    await embedder.embed_queries(["a"])
    assert [texts for _, texts, _ in loaded[0].asked[1:]] == [["passage: a"], ["query: a"]]


async def test_prompts_of_the_model_itself_come_first(install: Install) -> None:
    loaded = install(prompts={"query": "query: ", "document": "passage: "})
    embedder = open_sentence_transformers("some/e5-model")
    await embedder.embed(["a"])
    assert loaded[0].asked[-1][1] == ["a"]


def test_the_identity_changes_with_the_weights(install: Install) -> None:
    install()
    first, again = open_sentence_transformers("some/model"), open_sentence_transformers("some/model")
    install(weights=WEIGHTS + np.float32(0.001))
    tuned = open_sentence_transformers("some/model")
    install(max_seq_length=256)
    longer = open_sentence_transformers("some/model")
    assert first.identity == again.identity
    assert len({first.identity, tuned.identity, longer.identity}) == 3
    assert first.identity.startswith("sentence-transformers/some/model@")


def test_a_revision_is_pinned_after_an_at_sign(install: Install) -> None:
    loaded = install()
    open_sentence_transformers("some/model@a1b2c3")
    open_sentence_transformers("")
    assert [(model.name, model.revision) for model in loaded] == [
        ("some/model", "a1b2c3"),
        ("sentence-transformers/all-MiniLM-L6-v2", None),
    ]


def test_a_folder_is_known_by_its_name_wherever_it_is(install: Install, tmp_path: Path) -> None:
    loaded = install()
    identities = set()
    for parent in ("here", "there"):
        folder = tmp_path / parent / "tuned"
        folder.mkdir(parents=True)
        identities.add(open_sentence_transformers(str(folder)).identity)
        assert loaded[-1].name == str(folder)
    assert len(identities) == 1


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[sentence-transformers\]'"):
        open_sentence_transformers("some/model")


def test_a_model_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, revision: str | None) -> None:
        raise OSError("no such repository\nand a page of advice")

    library = ModuleType("sentence_transformers")
    library.SentenceTransformer = fail  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    with pytest.raises(Unavailable, match=r"cannot load some/model \(no such repository\)"):
        open_sentence_transformers("some/model")
