"""What can be quoted: sentences, exactly as they stand, without headings."""

from dataclasses import replace

from quipu.answer.pack import Passage
from quipu.answer.quotable import known_names, quotables
from quipu.model.graph import EntityMention
from tests.unit.answer.fakes import chunk, mentions

LONG = "The caravan left the city at dawn and went on for forty days until it came to the lake in the desert of salt."


def _texts(text: str, *, title: str = "Notes", headings: tuple[str, ...] = ()) -> list[str]:
    passage = Passage(number=1, chunk=chunk(title, text, headings=headings))
    return [quotable.text for quotable in quotables([passage], known_names([]))]


def test_each_sentence_can_be_quoted() -> None:
    assert _texts(f"{LONG} {LONG}") == [LONG, LONG]


def test_a_short_sentence_is_quoted_with_the_next_of_its_line() -> None:
    assert _texts(f"Hello! {LONG}\nBye.\nSee you.") == [f"Hello! {LONG}", "Bye.", "See you."]


def test_headings_are_not_quoted() -> None:
    assert _texts(f"# Notes\n\n## Days\n\n{LONG}", headings=("Days",)) == [LONG]


def test_what_has_no_words_is_not_quoted() -> None:
    assert _texts(f"---\n\n{LONG}\n\n* * *") == [LONG]


def test_fences_of_code_and_rules_of_tables_are_not_quoted() -> None:
    code = f"```text\n{LONG}\n```\n\n~~~\nexport INDEX=kb\n~~~ {{.sh}}\n"
    table = "| City | Days |\n|:-----|-----:|\n| Lop | 40 |\n+---+---+\n"
    assert _texts(f"{code}\n{table}") == [LONG, "export INDEX=kb", "| City | Days |", "| Lop | 40 |"]


def test_a_fence_stands_in_no_quote() -> None:
    assert _texts("Set it first:\n```sh\nexport INDEX=kb\n```\nThen ask.") == [
        "Set it first:",
        "export INDEX=kb",
        "Then ask.",
    ]
    assert _texts(f"```\n{LONG[:70]}\n{LONG[70:]}\n```") == [f"{LONG[:70]}\n{LONG[70:]}"]
    assert _texts("``` a word in marks ``` is no fence.") == ["``` a word in marks ``` is no fence."]


def test_a_quote_keeps_line_breaks_and_spaces_as_they_are() -> None:
    wrapped = LONG.replace("forty days", "forty\n  days")
    assert _texts(wrapped) == [wrapped]


def test_names_are_found_in_each_sentence_and_the_title_is_the_subject() -> None:
    text = f"{LONG} Marco Polo told of it while he sat in the prison of Genoa, and nobody there believed a word of it."
    passage = Passage(number=1, chunk=chunk("Lop Nur (lake)", text))
    first, second = quotables([passage], known_names(mentions({"Marco Polo": "Person", "Genoa": "Location"})))
    assert not first.names
    assert second.names == {"marco polo", "genoa"}
    assert first.subject == "lop nur"
    assert first.about - first.terms == {"lop", "nur"}


def test_the_type_of_a_name_is_the_one_most_mentions_give() -> None:
    said = [EntityMention(key="polo", surface="Polo", type=kind) for kind in ("Other", "Content", "Person", "Person")]
    assert known_names(said).type_by_key == {"polo": "Person"}


def test_a_row_of_a_table_is_about_what_its_header_says() -> None:
    row = replace(chunk("", "Anna Karenina of Moscow | 37"), header="Name | Shoe size")
    (quotable,) = quotables([Passage(number=1, chunk=row)], known_names([]))
    assert quotable.about - quotable.terms == {"sho", "siz"}  # "name" is asked of everything
