"""Reports without a model: names and sentences of the documents, in any script."""

import pytest

from quipu.derive.quoting import QUOTED, quoted, rating_of
from quipu.derive.report_material import Material
from quipu.derive.report_notes import Notes
from quipu.model.cluster import Cluster, Finding, Hierarchy
from quipu.model.graph import Chunk

_NO_NOTES = Notes(reports=(), subjects=(), connections=())


def _chunk(number: int, text: str) -> Chunk:
    return Chunk(
        id=f"c{number}",
        document_id="d",
        title="",
        ordinal=number,
        text=text,
        start=0,
        end=len(text),
        n_tokens=1,
        text_hash="",
    )


def _material(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...], *texts: str, n: int = 3) -> Material:
    cluster = Cluster(id="k", hierarchy=Hierarchy.COMMUNITIES, level=0, n_entities=n, inputs_hash="h")
    chunks = tuple(_chunk(number, text) for number, text in enumerate(texts))
    return Material(cluster=cluster, notes=_NO_NOTES, names=names, pairs=pairs, chunks=chunks, documents=("d",))


def test_the_title_names_the_chief_entities_and_the_summary_quotes_the_most_telling_sentence_of_each_chunk() -> None:
    texts = (
        "It rained. Ada met Bo in Acre. Ada left.",
        "Bo slept. Cy woke. Cy hit Bo.",
        "Nobody came.",
        "Ada sang. She ate.",
    )
    report = quoted(_material(("Ada", "Bo", "Cy", "Di"), (("Ada", "Bo"), ("Bo", "Cy")), *texts))
    assert report.title == "Ada, Bo, Cy"
    assert report.summary == "Ada met Bo in Acre. Cy hit Bo. Nobody came."
    assert report.findings == (Finding(summary="Ada sang."),)
    assert report.chunks == ("c0", "c1", "c2", "c3")
    assert (report.cluster, report.inputs_hash, report.model, report.rating) == ("k", "h", QUOTED, 2.0)


@pytest.mark.parametrize(
    ("names", "text", "sentence"),
    [
        (("马可·波罗", "忽必烈"), "天气很好。马可·波罗见到了忽必烈。他走了。", "马可·波罗见到了忽必烈。"),
        (("Иван", "Марфа"), "Шёл дождь. Иван и Марфа ушли домой. Стало темно.", "Иван и Марфа ушли домой."),
    ],
)
def test_sentences_are_found_in_any_script(names: tuple[str, ...], text: str, sentence: str) -> None:
    report = quoted(_material(names, ((names[0], names[1]),), text))
    assert (report.title, report.summary) == (", ".join(names), sentence)


@pytest.mark.parametrize(
    ("names", "text", "sentence"),
    [
        (("US", "IT"), "Customers must visit Austrian custom houses. The US left IT.", "The US left IT."),
        (("US", "IT"), "Let us see it. IT grew in the US.", "IT grew in the US."),
        (("Ann", "Ada"), "The announcer read Adagio to Joan. Ada's dog bit Ann.", "Ada's dog bit Ann."),
        (("paper", "St. Ives"), "Newspapers came to ives. They made paper at St Ives.", "They made paper at St Ives."),
        (("Ося", "Аня"), "Косяки у Вани. Ося и Аня.", "Ося и Аня."),
    ],
)
def test_a_name_within_other_words_names_nobody(names: tuple[str, str], text: str, sentence: str) -> None:
    assert quoted(_material(names, (names,), text)).summary == sentence


def test_a_sentence_is_quoted_once_and_a_chunk_without_any_is_left_out() -> None:
    report = quoted(_material(("Ada",), (), "Ada sang.", "Ada sang.", " "))
    assert (report.summary, report.findings) == ("Ada sang.", ())


def test_a_heading_is_quoted_only_where_there_is_nothing_else() -> None:
    assert quoted(_material(("Ada",), (), "# Ada and Ada\n\nAda sang.")).summary == "Ada sang."
    assert quoted(_material(("Ada",), (), "# Ada")).summary == "# Ada"


def test_there_is_a_title_even_where_there_is_nothing_to_say() -> None:
    report = quoted(_material((), ()))
    assert (report.title, report.summary, report.chunks) == ("k", "", ())


def test_a_community_matters_by_its_size() -> None:
    assert [rating_of(n) for n in (1, 3, 10, 1_023, 10**6)] == [1.0, 2.0, 3.5, 10.0, 10.0]
