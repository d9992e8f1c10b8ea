"""Tests of vectors and scores of hashed words."""

import numpy as np

from quipu.testing.scripted.vectors import embed_words, score_words

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
