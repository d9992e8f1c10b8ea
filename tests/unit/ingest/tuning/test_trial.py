"""Tests of the trial: short texts, examples, and what two readings of a chunk have in common."""

import pytest

from quipu.ingest.tuning.suggestion import excerpts
from quipu.ingest.tuning.trial import MAX_LENGTH, MIN_LENGTH, compare_results, example_of, short_texts
from quipu.ingest.tuning.tuner import diff_prompts
from quipu.model.extraction import ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.tuning import TypedName
from quipu.ports.ingest import ExtractionResult
from quipu.providers.local import ByteTokenizer
from tests.unit.ingest.tuning.world import chunk

POLO = (
    "Marco Polo travelled from Venice to China. Kublai Khan received Marco Polo in Shangdu. "
    "Niccolo Polo had met Kublai Khan before. Rustichello of Pisa wrote the book down in Genoa."
)
DULL = "It rained all day and nobody went out. The next day was much the same, and so was the one after it. " * 3
RUSSIAN = (
    "Иван Фёдоров напечатал Апостол в Москве. Пётр Мстиславец помогал Ивану Фёдорову. "
    "Позже Иван Фёдоров уехал во Львов и напечатал Азбуку."
)
CHINESE = (
    "毕昇是北宋时期的工匠，他发明了活字印刷术。沈括在《梦溪笔谈》里记下了毕昇的方法。王祯后来在旌德县制作了木活字，"
    "印成了《旌德县志》。"
)


def test_an_excerpt_ends_with_a_sentence_and_all_together_keep_to_their_room() -> None:
    tokenizer = ByteTokenizer()
    found = excerpts([chunk(POLO, title="Polo"), chunk(DULL)], 100, tokenizer)
    assert found[0].title == "Polo"
    assert found[0].text == POLO or found[0].text.endswith(".")
    assert POLO.startswith(found[0].text) and DULL.startswith(found[1].text)
    assert sum(tokenizer.count(each.text) for each in found) <= 100
    assert excerpts([chunk(POLO)], 10_000, tokenizer)[0].text == POLO


def test_a_sentence_longer_than_the_room_is_cut() -> None:
    (found,) = excerpts([chunk("word " * 500)], 20, ByteTokenizer())
    assert 0 < len(found.text) <= 100


@pytest.mark.parametrize("text", [POLO, RUSSIAN, CHINESE])
def test_a_text_full_of_names_is_found_in_any_script(text: str) -> None:
    (found,) = short_texts([chunk(text)], 2)
    assert found.text in text and len(found.text) <= MAX_LENGTH


def test_the_best_of_each_document_comes_first_and_texts_without_names_never() -> None:
    others = " ".join(f"Envoy Jones{n} met Captain Khan{n} in Venice and told him of China." for n in range(20))
    found = short_texts([chunk(others, "b.md"), chunk(POLO, "a.md"), chunk(DULL, "c.md")], 3)
    assert {each.chunk.document_id for each in found[:2]} == {"a.md", "b.md"}
    assert found[2].chunk.document_id == "b.md"
    assert all(MIN_LENGTH <= len(each.text) <= MAX_LENGTH for each in found)
    assert short_texts([chunk(DULL)], 2) == []


def test_texts_in_the_usual_language_are_preferred() -> None:
    usual = [chunk(f"{POLO} {word}", f"{word}.md") for word in ("One.", "Two.")]
    found = short_texts([chunk(CHINESE, "zh.md"), chunk(RUSSIAN, "ru.md"), *usual], 2)
    assert {each.chunk.document_id for each in found} == {"One..md", "Two..md"}


def test_a_text_has_no_break_within() -> None:
    (found,) = short_texts([chunk(f"Short.\n\n{POLO}\n\nShort, too.")], 2)
    assert found.text == POLO


def related(source: str, target: str) -> ExtractedRelation:
    return ExtractedRelation(source=source, target=target, keywords=("met",), weight=0.7)


def test_an_example_has_what_the_text_bears_out_word_by_word() -> None:
    named = [
        ExtractedEntity(name=name, type="Person", start=3, end=9) for name in ("Marco Polo", "Kublai Khan", "Polo Ray")
    ]
    found = example_of(
        POLO,
        Extraction(
            entities=tuple(named), relations=(related("Marco Polo", "Kublai Khan"), related("Marco Polo", "Polo Ray"))
        ),
    )
    assert found is not None
    assert found.entities == tuple(ExtractedEntity(name=each.name, type="Person") for each in named[:2])
    assert found.relations == (related("Marco Polo", "Kublai Khan"),)


def test_an_extraction_that_says_too_little_is_no_example() -> None:
    polo, khan = (ExtractedEntity(name=name, type="Person") for name in ("Marco Polo", "Kublai Khan"))
    assert example_of(POLO, Extraction()) is None
    assert example_of(POLO, Extraction(entities=(polo, khan))) is None
    assert example_of(POLO, Extraction(entities=(polo,), relations=(related("Marco Polo", "Marco Polo"),))) is None


def test_an_example_is_short() -> None:
    names = [f"Envoy Jones{n}" for n in range(9)]
    text = " ".join(f"{name} came." for name in names)
    found = example_of(
        text,
        Extraction(
            entities=tuple(ExtractedEntity(name=name, type="Person") for name in names),
            relations=tuple(related(one, other) for one in names[:4] for other in names[:4] if one < other),
        ),
    )
    assert found is not None
    assert (len(found.entities), len(found.relations)) == (6, 5)


def outcome(**types: str) -> ExtractionResult:
    entities = tuple(ExtractedEntity(name=name.replace("_", " "), type=kind) for name, kind in types.items())
    return ExtractionResult(index=0, extraction=Extraction(entities=entities))


def test_names_of_one_reading_alone_and_other_types_are_told() -> None:
    found = compare_results(
        chunk("Text.", "a.md", title="T"),
        outcome(Marco_Polo="Person", Venice="Location", Silk="Other"),
        outcome(marco_polo="Traveller", Venice="Location", Persia="Location"),
    )
    assert (found.document_id, found.title) == ("a.md", "T")
    assert (found.only_before, found.only_after, found.retyped) == (("Silk",), ("Persia",), ("marco polo",))
    assert found.before.entities[0] == TypedName(name="Marco Polo", type="Person")


def test_relations_are_counted_and_a_reading_that_failed_says_why() -> None:
    related = ExtractedRelation(source="A", target="B")
    before = ExtractionResult(index=0, extraction=Extraction(relations=(related,)))
    found = compare_results(chunk("Text."), before, ExtractionResult(index=0, extraction=None, error="too long"))
    assert (found.before.n_relations, found.after.n_relations) == (1, 0)
    assert (found.before.error, found.after.error) == ("", "too long")


def test_the_difference_of_prompts_is_a_unified_diff() -> None:
    assert diff_prompts("a\nb\nc\nd", "a\nb\nx\nd") == (
        "--- prompt before\n+++ prompt tuned\n@@ -2,3 +2,3 @@\n b\n-c\n+x\n d"
    )
    assert diff_prompts("same", "same") == ""
