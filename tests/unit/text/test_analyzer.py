"""Tests of the terms of full text, with and without a segmenter."""

import pytest

from quipu.providers.jieba import JiebaSegmenter
from quipu.text.analyzer import Analyzer
from quipu.text.words import TOKENIZER_IDENTITY, index_terms, split_words

TEXT = "毕业于中国科学院计算所, then on to the Great Wall 长城"


@pytest.fixture
def analyzer() -> Analyzer:
    segmenter = JiebaSegmenter()
    return Analyzer(segment=segmenter.words, segmenter=segmenter.identity)


def test_without_a_segmenter_terms_are_words_and_pairs() -> None:
    words = split_words(TEXT)
    assert Analyzer().terms(words) == index_terms(words)
    assert Analyzer().identity == TOKENIZER_IDENTITY


def test_a_segmenter_adds_longer_words_behind_the_pairs(analyzer: Analyzer) -> None:
    words = split_words(TEXT)
    pairs, terms = index_terms(words), analyzer.terms(words)
    assert terms[: len(pairs)] == pairs
    assert {"中国科学院", "计算所"} <= set(terms[len(pairs) :])
    assert all(len(term) >= 3 for term in terms[len(pairs) :])


def test_questions_are_cut_as_chunks_are(analyzer: Analyzer) -> None:
    assert "中国科学院" in analyzer.query_terms("中国科学院在哪里？")
    assert set(analyzer.query_terms("中国科学院")) <= set(analyzer.terms(split_words(TEXT)))


def test_the_segmenter_is_part_of_the_recorded_identity(analyzer: Analyzer) -> None:
    assert analyzer.identity.startswith(f"{TOKENIZER_IDENTITY}+jieba/")
