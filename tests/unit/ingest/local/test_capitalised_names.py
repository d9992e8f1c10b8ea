"""Names by their capital letters."""

import pytest

from quipu.ingest.local.capitalised_names import find_capitalised
from quipu.text.sentences import sentence_spans


def _names(text: str) -> list[str]:
    return [occurrence.name for occurrence in find_capitalised(text, sentence_spans(text))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("In 1498 Vasco da Gama reached Calicut.", ["Vasco da Gama", "Calicut"]),
        ("She studied at the University of Texas at El Paso.", ["University of Texas at El Paso"]),
        ("He works for the Museum of History and Industry in Seattle.", ["Museum of History and Industry", "Seattle"]),
        ("They moved from Ohio and Kansas to Utah.", ["Ohio", "Kansas", "Utah"]),
        ("It lies in Nookat District of Osh Province.", ["Nookat District", "Osh Province"]),
        ("They met William the Conqueror there.", ["William the Conqueror"]),
        ("We read J. R. R. Tolkien and used AT&T phones.", ["J. R. R. Tolkien", "AT&T"]),
        ("The iPhone, mRNA and WASP-39b are known.", ["iPhone", "mRNA", "WASP-39b"]),
    ],
)
def test_connectors_join_what_is_one_name_and_part_what_is_two(text: str, names: list[str]) -> None:
    assert _names(text) == names


def test_a_possessive_parts_owner_and_thing_unless_it_is_the_name() -> None:
    assert _names("the report of South Korea's Constitutional Court") == ["South Korea", "Constitutional Court"]
    assert _names("a student of King's College London") == ["King's College London"]
    assert _names("at the end of the Thirty Years' War") == ["Thirty Years' War"]


def test_offices_are_cut_from_full_names_and_kept_with_bare_ones() -> None:
    assert _names("said President Yoon Suk Yeol and Mr. Petrov") == ["Yoon Suk Yeol", "Mr. Petrov"]
    assert _names("built by General Motors for Queen Nzinga") == ["General Motors", "Queen Nzinga"]


def test_words_that_open_sentences_and_common_words_are_no_names() -> None:
    assert _names("However, After that the Company and its Board met on Monday. This ended.") == []


def test_dates_are_no_names_but_a_year_or_number_may_be_part_of_one() -> None:
    assert _names("on 8 February 2018 and in May 1960") == []
    assert _names("at the 2020 Summer Olympics, Apollo 11 and Line 12") == [
        "2020 Summer Olympics",
        "Apollo 11",
        "Line 12",
    ]
    assert _names("they paid Anna 800 guilders") == ["Anna"]


def test_an_adjective_made_with_a_hyphen_leaves_the_name_alone() -> None:
    assert _names("the Toronto-based band of Saxe-Coburg") == ["Toronto", "Saxe-Coburg"]


def test_small_words_that_say_what_a_name_is_belong_to_it() -> None:
    assert _names("under the Joseon dynasty near the Harz mountains") == ["Joseon dynasty", "Harz mountains"]


def test_letters_inside_chinese_text_are_a_name_of_their_own() -> None:
    assert _names("发布Mate 60手机，常用的库有NumPy和Pandas。") == ["Mate 60", "NumPy", "Pandas"]


def test_a_heading_line_gives_no_names() -> None:
    assert _names("## Meeting Babbage\n\nThey met Babbage.") == ["Babbage"]


def test_a_common_word_in_capitals_is_an_acronym_only_in_brackets() -> None:
    assert _names("They know it (IT) and the US.") == ["IT", "US"]
    assert _names("You MUST NOT do it.") == []


def test_two_names_side_by_side_are_two() -> None:
    assert _names("During the Second World War Michael Ventris flew.") == ["Second World War", "Michael Ventris"]
    assert _names("such as Linux and Mac OS X. Windows also reads it.") == ["Linux", "Mac OS X", "Windows"]
    assert _names("they met George W. Bush and Boston Marathon Paul Revere") == [
        "George W. Bush",
        "Boston Marathon",
        "Paul Revere",
    ]


def test_a_word_that_stands_twice_by_chance_is_one_name() -> None:
    assert _names("they called Scrooge Scrooge, and Scrooge heard") == ["Scrooge", "Scrooge"]
    assert _names("they heard Duran Duran; then Duran Duran left") == ["Duran Duran", "Duran Duran"]


def test_a_word_that_begins_sentences_is_cut_after_speech() -> None:
    assert _names("and will you----'\nHere Scrooge whispered") == ["Scrooge"]


def test_instructions_are_no_part_of_a_name() -> None:
    assert _names("Install Celery from PyPI.") == ["Celery", "PyPI"]
    assert _names("2. Install Cygwin first.") == ["Cygwin"]
    assert _names("Use the Devcontainer for it.") == ["Devcontainer"]
    assert _names("Jack the Ripper left.") == ["Jack the Ripper"]


def test_words_in_capitals_for_emphasis_are_no_names() -> None:
    assert _names("pass the repo as REPO to it, OR ELSE THE END") == []
    assert _names("it reads PYTHONPATH from NASA") == ["PYTHONPATH", "NASA"]


def test_a_row_of_numbers_and_a_label_are_no_names() -> None:
    assert _names("Page 1 shows it. Petit Larceny 286 283 1.1") == ["Petit Larceny"]
