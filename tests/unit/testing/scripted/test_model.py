"""Scripted model: tokens and vectors."""

import numpy as np

from quipu.testing.scripted.model import (
    PrefixMemory,
    count_prompt,
    count_tokens,
    embed_words,
    first_tokens,
    score_words,
)

LONG = "word " * 2000  # 2,500 tokens


def test_a_token_is_four_bytes() -> None:
    assert [count_tokens(text) for text in ("", "abcd", "abcde", "语言")] == [0, 1, 2, 2]
    assert count_prompt(["abcd", "abcd"]) == 10


def test_a_text_is_cut_between_characters() -> None:
    assert first_tokens("语言模型", 1) == "语"
    assert first_tokens("abcdefgh", 1) == "abcd"


def test_the_beginning_of_an_earlier_prompt_is_cached() -> None:
    memory = PrefixMemory()
    assert memory.count_cached([LONG, "one"]) == 0
    assert memory.count_cached([LONG, "two"]) == 2432  # whole blocks of 128


def test_a_short_or_another_beginning_is_not_cached() -> None:
    memory = PrefixMemory()
    memory.count_cached([LONG[:3000]])
    assert memory.count_cached([LONG[:3000]]) == 0
    memory.count_cached([LONG])
    assert memory.count_cached(["x" + LONG]) == 0


TEXTS = ["Alice Kober taught classics", "Alice Kober taught at Brooklyn College", "Rain fell on the hills", ""]


def test_vectors_are_of_length_one_and_of_the_dimension_asked_for() -> None:
    vectors = embed_words(TEXTS, 48)
    assert vectors.shape == (4, 48) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0], atol=1e-6)


def test_texts_with_words_in_common_are_nearer() -> None:
    one, two, three, _ = embed_words(TEXTS, 256)
    assert one @ two > 0.5 > one @ three


def test_a_vector_does_not_depend_on_the_other_texts() -> None:
    assert embed_words(TEXTS, 64)[1].tobytes() == embed_words(TEXTS[1:2], 64)[0].tobytes()


def test_a_score_is_the_share_of_the_questions_words() -> None:
    assert score_words("Who taught classics?", TEXTS) == [2 / 3, 1 / 3, 0, 0]
    assert score_words("", TEXTS[:1]) == [0]
