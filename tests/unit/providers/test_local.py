"""The byte tokenizer, and the embedder beside the library its weights come from."""

import importlib.util
import logging
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tiktoken
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from quipu.errors import InvalidInput, Unavailable
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder, open_tokenizer

TEXTS = [
    "The Inca recorded numbers on knotted cords.",
    "Quipus, or talking knots, were read by specialists called quipucamayocs.",
    "Инки вели счёт с помощью узлов на шнурах.",
    "印加人用绳结记录数字。",
    "  two  leading spaces,\ttabs\nand lines ",
    "🪢 knots and </s> odd <unk> marks é é",
    "x",
]


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("绳结", 2), ("\ud83e", 1)])
def test_a_token_is_four_bytes_rounded_up(text: str, count: int) -> None:
    assert ByteTokenizer().count(text) == count


def test_identities_name_the_rule_and_the_model() -> None:
    assert ByteTokenizer().identity == "bytes/4"
    assert WordLlamaEmbedder().identity == "wordllama/l2_supercat_256/1"
    assert WordLlamaEmbedder().dimension == 256


async def test_vectors_have_length_one(embedder: WordLlamaEmbedder) -> None:
    vectors = await embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 256)
    assert vectors.dtype == np.float32
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6


async def test_no_texts_give_no_vectors(embedder: WordLlamaEmbedder) -> None:
    assert (await embedder.embed([])).shape == (0, 256)


async def test_the_empty_text_gives_a_zero_vector(embedder: WordLlamaEmbedder) -> None:
    vectors = await embedder.embed(["", "knots"])
    assert not vectors[0].any()
    assert vectors[1].any()


async def test_a_vector_does_not_depend_on_its_batch(embedder: WordLlamaEmbedder) -> None:
    texts = [*TEXTS, *(" ".join(TEXTS[:n]) * 40 for n in range(1, 7))]
    together = await embedder.embed(texts)
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    assert np.array_equal(together.view(np.uint32), alone.view(np.uint32))
    assert np.array_equal((await embedder.embed(texts[::-1]))[::-1].view(np.uint32), alone.view(np.uint32))


async def test_texts_in_other_words_are_nearer_than_other_texts(embedder: WordLlamaEmbedder) -> None:
    knots, specialists, *_ = TEXTS
    a, b, c = await embedder.embed([knots, specialists, "The central bank raised interest rates by half a point."])
    assert a @ b > a @ c + 0.1


async def test_a_long_text_embeds_as_the_mean_of_all_its_tokens(embedder: WordLlamaEmbedder) -> None:
    sentence = "the cords hang from a main cord and the knots are numbers in base ten "
    short, long = await embedder.embed([sentence * 100, sentence * 3_000])
    assert short @ long > 0.99999


async def test_a_long_text_without_spaces_is_embedded(embedder: WordLlamaEmbedder) -> None:
    (vector,) = await embedder.embed(["绳结" * 20_000])
    assert abs(np.linalg.norm(vector) - 1) < 1e-6


async def test_lone_surrogates_do_no_harm(embedder: WordLlamaEmbedder) -> None:
    (vector,) = await embedder.embed(["knots \ud83e and cords"])
    assert vector.any()


async def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str, package: str | None = None) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)  # the only way to be without an installed package
    with pytest.raises(Unavailable, match="pip install wordllama"):
        await WordLlamaEmbedder().embed(["knots"])


async def test_a_package_without_its_weights_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find_empty(name: str, package: str | None = None) -> ModuleSpec | None:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path)]
        return spec

    monkeypatch.setattr(importlib.util, "find_spec", find_empty)  # as above
    with pytest.raises(Unavailable, match="l2_supercat_256"):
        await WordLlamaEmbedder().embed(["knots"])


@pytest.fixture
def quiet_root_logger() -> Iterator[None]:
    """Importing wordllama configures the root logger; put it back."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.mark.usefixtures("quiet_root_logger")
async def test_vectors_equal_those_of_the_library(embedder: WordLlamaEmbedder) -> None:
    library: Any = pytest.importorskip("wordllama")
    folder = Path(library.__file__).parent
    model = library.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = [*TEXTS, " ".join(TEXTS) * 20]
    expected: npt.NDArray[np.float32] = model.embed(texts, norm=True)
    cosines = ((await embedder.embed(texts)) * expected).sum(axis=1)
    assert np.abs(cosines - 1).max() < 1e-5


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """A tokenizer.json that knows a few words and frames each text with two tokens."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "knots": 2, "cords": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [CLS]", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_a_tokenizer_file_counts_all_tokens_of_a_text_without_its_frame(tokenizer_file: Path) -> None:
    tokenizer = open_tokenizer(str(tokenizer_file))
    assert [tokenizer.count(text) for text in ("", "knots", "knots and cords", "cords " * 9, "\ud83e")] == [
        0,
        1,
        3,
        9,
        1,
    ]
    assert open_tokenizer("bytes").identity == "bytes/4"


def test_an_encoding_of_tiktoken_counts_special_tokens_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = tiktoken.Encoding(
        "letters",
        pat_str=r"(?s:.)",
        mergeable_ranks={bytes([i]): i for i in range(256)} | {b"kn": 256},
        special_tokens={"<|endoftext|>": 257},
    )
    monkeypatch.setattr(tiktoken, "get_encoding", {"cl100k_base": letters}.__getitem__)
    tokenizer = open_tokenizer("tiktoken/cl100k_base")
    assert [tokenizer.count(text) for text in ("", "knot", "<|endoftext|>", "\ud83e")] == [0, 4, 13, 1]
    assert tokenizer.identity == "tiktoken/cl100k_base"


def test_a_tokenizer_that_cannot_be_had_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.json").write_text("{")
    for name in ("broken.json", "missing.json"):
        with pytest.raises(InvalidInput, match=r"is no tokenizer\.json") as refused:
            open_tokenizer(str(tmp_path / name))
        assert "tiktoken/o200k_base" in refused.value.remedy
    with pytest.raises(InvalidInput, match="no encoding 'gpt-9'") as unknown:
        open_tokenizer("tiktoken/gpt-9")
    assert "cl100k_base" in unknown.value.remedy
    monkeypatch.setattr(tiktoken, "get_encoding", {}.__getitem__)
    with pytest.raises(Unavailable, match="cannot load the encoding cl100k_base"):
        open_tokenizer("tiktoken/cl100k_base")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(Unavailable, match="not installed") as missing:
        open_tokenizer("tiktoken/cl100k_base")
    assert "quipu-rag[tiktoken]" in missing.value.remedy
