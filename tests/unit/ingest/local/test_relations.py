"""Relations of a chunk."""

from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput, ExtractedRelation


def _relations(text: str, title: str = "") -> dict[frozenset[str], ExtractedRelation]:
    relations = extract_chunk(ChunkInput(text=text, title=title)).relations
    return {frozenset((relation.source, relation.target)): relation for relation in relations}


def test_names_of_one_sentence_are_related_with_the_words_between_them() -> None:
    relation = _relations("Ada Lovelace corresponded with Charles Babbage.")[
        frozenset(("Ada Lovelace", "Charles Babbage"))
    ]

    assert relation.keywords == ("corresponded",)
    assert relation.description == "Ada Lovelace corresponded with Charles Babbage."
    assert relation.weight == 1.0


def test_the_weight_is_the_number_of_sentences() -> None:
    text = "Ada Lovelace met Charles Babbage. Later Charles Babbage wrote to Ada Lovelace. Charles Babbage died."

    assert _relations(text)[frozenset(("Ada Lovelace", "Charles Babbage"))].weight == 2.0


def test_the_first_name_is_related_to_each_and_neighbours_to_each_other() -> None:
    pairs = set(_relations("Norway borders Sweden, Finland, Russia."))

    assert frozenset(("Norway", "Russia")) in pairs
    assert frozenset(("Finland", "Russia")) in pairs
    assert frozenset(("Sweden", "Russia")) not in pairs


def test_the_page_is_the_subject_of_sentences_that_do_not_name_it() -> None:
    relation = _relations("It was designed by Joern Utzon.", "Sydney Opera House")[
        frozenset(("Sydney Opera House", "Joern Utzon"))
    ]

    assert relation.source == "Sydney Opera House"
    assert relation.keywords == ("designed",)


def test_the_speaker_is_the_subject_of_what_is_said() -> None:
    text = "Maya: Hello! I moved to Lisbon.\nDaniel: Great! I stay in Porto."

    pairs = set(_relations(text))

    assert frozenset(("Maya", "Lisbon")) in pairs
    assert frozenset(("Daniel", "Porto")) in pairs
    assert frozenset(("Maya", "Porto")) not in pairs


def test_a_title_is_related_to_its_subject() -> None:
    relations = extract_chunk(ChunkInput(text="Ada Lovelace wrote it.", title="Ada Lovelace and the Notes")).relations

    assert [(relation.source, relation.target) for relation in relations] == [
        ("Ada Lovelace and the Notes", "Ada Lovelace")
    ]


def test_chinese_keywords_are_the_words_between() -> None:
    assert _relations("王安石批评司马光。")[frozenset(("王安石", "司马光"))].keywords == ("批评",)
