"""Cutting texts into windows."""

import json
from itertools import chain
from pathlib import Path

import pytest

from quipu.errors import Unavailable
from quipu.providers.minilm.embedder import MAX_WINDOW, WindowTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "knot", "cord", "x"]
CLS, SEP = 2, 3


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A tokenizer of seven words, with the padding and truncation that the model's own file asks for."""
    path = tmp_path / "tokenizer.json"
    model = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(VOCABULARY)}, "unk_token": "[UNK]"}
    padding = {
        "strategy": {"Fixed": 128},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    truncation = {"max_length": 128, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": truncation,
                "padding": padding,
                "added_tokens": [],
                "normalizer": None,
                "pre_tokenizer": {"type": "Whitespace"},
                "post_processor": None,
                "decoder": None,
                "model": model,
            }
        )
    )
    return path


def test_a_short_text_is_one_window_between_marks(tokenizer: Path) -> None:
    windows = WindowTokenizer(tokenizer, n_tokens=7)
    assert windows.windows(["knot cord", "", "  "]) == [[[CLS, 4, 5, SEP]], [], []]


@pytest.mark.parametrize(("n_words", "n_windows"), [(254, 1), (255, 2), (508, 2), (509, 3), (5_000, 20)])
def test_a_long_text_is_cut_evenly_and_whole(tokenizer: Path, n_words: int, n_windows: int) -> None:
    (found,) = WindowTokenizer(tokenizer, n_tokens=7).windows(["knot cord " * (n_words // 2) + "knot" * (n_words % 2)])
    lengths = {len(window) for window in found}
    assert len(found) == n_windows
    assert max(lengths) <= MAX_WINDOW
    assert max(lengths) - min(lengths) <= 1
    assert all((window[0], window[-1]) == (CLS, SEP) for window in found)
    words = list(chain.from_iterable(window[1:-1] for window in found))
    assert words == ([4, 5] * n_words)[:n_words]


def test_what_is_longer_than_any_chunk_is_not_read(tokenizer: Path) -> None:
    (found,) = WindowTokenizer(tokenizer, n_tokens=7).windows(["é " * 1_000_000])
    assert sum(len(window) - 2 for window in found) == -(-131_072 // 3)  # "é" is two bytes, the space one


def test_lone_surrogates_do_no_harm(tokenizer: Path) -> None:
    (found,) = WindowTokenizer(tokenizer, n_tokens=7).windows(["knot \ud83e cord"])
    assert found == [[CLS, 4, 1, 5, SEP]]


def test_another_models_tokenizer_is_refused(tokenizer: Path) -> None:
    with pytest.raises(Unavailable, match="not the tokenizer of all-MiniLM-L6-v2"):
        WindowTokenizer(tokenizer, n_tokens=8)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(Unavailable, match="is not a tokenizer"):
        WindowTokenizer(path, n_tokens=7)
