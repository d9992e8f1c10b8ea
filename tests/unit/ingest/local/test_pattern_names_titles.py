"""Titles and headings as names."""

import pytest

from quipu.ingest.local.occurrences import Cue
from quipu.ingest.local.pattern_names import find_in_headings, find_in_title


def _names(title: str, text: str = "") -> list[tuple[str, Cue]]:
    return [(occurrence.name, occurrence.cue) for occurrence in find_in_title(title, text)]


def test_a_trailing_bracket_is_no_part_of_the_name() -> None:
    assert _names("Theodred II (Bishop of Elmham)") == [("Theodred II", Cue.TITLE)]


@pytest.mark.parametrize(
    "title", ["week1/20260105_1100", "report.pdf", "2026-01-05", "Novel-25646", "Who are you?", "", "  ", "42"]
)
def test_paths_dates_numbers_and_questions_are_no_names(title: str) -> None:
    assert _names(title) == []


@pytest.mark.parametrize(
    "title", [".. _WdColorIndex:", "caching", "Frequently asked questions", "порядок развёртывания", "Overview"]
)
def test_phrases_and_labels_of_markup_are_no_names(title: str) -> None:
    assert _names(title, f"# {title}\n\nIt is here.") == []


def test_a_russian_title_is_a_name_though_only_its_first_word_has_a_capital() -> None:
    assert ("Журнал смотрителя", Cue.TITLE) in _names("Журнал смотрителя", "# Журнал смотрителя\n\nЗаписи о маяке.")


def test_the_frame_of_an_electronic_book_is_no_part_of_its_title() -> None:
    assert _names("The Project Gutenberg eBook of Moby Dick") == [("Moby Dick", Cue.TITLE)]
    assert _names("GraphRAG Indexing 🤖") == [("GraphRAG Indexing", Cue.TITLE)]


def test_the_first_name_inside_a_longer_title_is_its_subject() -> None:
    assert _names("Ada Lovelace and the Notes") == [
        ("Ada Lovelace and the Notes", Cue.TITLE),
        ("Ada Lovelace", Cue.SUBJECT),
    ]


def test_names_of_the_text_tell_what_a_chinese_title_is_made_of() -> None:
    found = find_in_title("郑和下西洋", "郑和", ["郑和", "云南", "西洋"])

    assert [(occurrence.name, occurrence.cue) for occurrence in found[1:]] == [
        ("郑和", Cue.SUBJECT),
        ("西洋", Cue.HEADING),
    ]


def test_a_title_is_placed_where_the_text_has_it_as_a_word_in_any_case() -> None:
    title = find_in_title("Utility frequency", "The utilities: the utility frequency is 50 Hz.")[0]

    assert (title.start, title.end) == (19, 36)
    assert find_in_title("Iran", "Tehran and Iranian oil")[0].end == 0


def test_headings_count_only_where_they_are_one_name() -> None:
    headings = ["Julius Caesar", "Early life", "Meeting Babbage", "Career and legacy", "Battle of Hastings"]

    found = find_in_headings(headings, "## Battle of Hastings\n\nThe Battle of Hastings was fought in 1066.")

    assert [occurrence.name for occurrence in found] == ["Julius Caesar", "Battle of Hastings"]
