import pytest

from quipu.answer.question_kind import QuestionPart
from quipu.answer.sentence_scores import WordFinder
from quipu.text.questions import base_form


@pytest.mark.parametrize(
    ("question", "text", "term"),
    [
        ("Where did Alice Kober teach?", "She taught classics.", "teach"),
        ("Who taught her Greek?", "A priest teaches Greek.", "teach"),
        ("When was the report written?", "They wrote it in 1931.", "writ"),
        ("How many women voted?", "One woman voted.", "woman"),
    ],
)
def test_a_form_of_a_word_is_found_by_another(question: str, text: str, term: str) -> None:
    assert term in WordFinder(QuestionPart(words=question)).terms_in(text)


@pytest.mark.parametrize("word", ["found", "left", "ledger", "made-up"])
def test_other_words_stay_as_they_are(word: str) -> None:
    assert base_form(word) == word
