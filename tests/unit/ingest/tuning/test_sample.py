"""Which chunks a sample is made of."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu.ingest.documents import IngestConfig
from quipu.ingest.local import LocalExtractor
from quipu.ingest.sources import FoundSource, find_sources
from quipu.ingest.tuning import sample
from quipu.ingest.tuning.sample import choose_sample, in_sampling_order, pool_of_sources
from quipu.model.event import ignore_event
from quipu.parse import FILE_TYPES, parse
from quipu.providers.local import ByteTokenizer, WordLlamaEmbedder
from tests.unit.ingest.tuning.world import chunk, chunks


def test_the_same_chunks_give_the_same_sample_in_whatever_order_they_come() -> None:
    found = chunks(5, 6)
    assert choose_sample(found, 8, 2) == choose_sample(found[::-1], 8, 2)


def test_every_document_has_its_turn_before_one_has_a_second() -> None:
    order = [each.document_id for each in in_sampling_order([*chunks(4, 3), *(chunks(1, 9))])]
    assert sorted(order[:4]) == ["d0", "d1", "d2", "d3"]
    assert Counter(order[:12]).most_common()[-1][1] == 3


def test_which_chunks_are_taken_depends_on_their_content_not_on_names_or_places() -> None:
    texts = [each.text for each in chunks(1, 20)]
    one = choose_sample([chunk(text, "a.md", ordinal=n) for n, text in enumerate(texts)], 5, 0)
    other = choose_sample([chunk(text, "b.md", ordinal=-n) for n, text in enumerate(texts)], 5, 0)
    assert [each.text for each in one.learned] == [each.text for each in other.learned]
    assert [each.text for each in one.learned] != texts[:5]


def test_near_duplicates_and_texts_without_words_are_left_out() -> None:
    text = chunks(1, 1)[0].text
    found = [chunk(text, "a"), chunk(f"{text} again", "b"), chunk("--- *** ---", "c"), *chunks(2, 1)[1:]]
    sample = choose_sample(found, 10, 0)
    assert len(sample.learned) == 2
    assert {each.document_id for each in sample.learned} & {"a", "b"}


def test_short_chunks_are_taken_last() -> None:
    short = [chunk(each.text, each.document_id, n_tokens=5) for each in chunks(3, 2)]
    long = chunk("A long passage about lighthouses.", "z")
    assert next(in_sampling_order([*short, long])) == long
    assert len(list(in_sampling_order([*short, long]))) == 7


@pytest.mark.parametrize(
    ("n_chunks", "n_read", "n_compared"),
    [(1, 1, 0), (3, 3, 0), (4, 3, 1), (8, 6, 2), (13, 11, 2), (14, 12, 2), (30, 12, 2)],
)
def test_of_few_chunks_at_most_a_quarter_is_kept_apart(n_chunks: int, n_read: int, n_compared: int) -> None:
    sample = choose_sample(chunks(n_chunks, 1), 12, 2)
    assert (len(sample.learned), len(sample.compared)) == (n_read, n_compared)
    assert not set(sample.learned) & set(sample.compared)


def test_of_no_chunk_there_is_no_sample() -> None:
    assert choose_sample([], 12, 2) == sample.TuningSample((), (), ())


async def test_documents_are_cut_for_real_and_what_cannot_be_read_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe text of {name}.", encoding="utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"no PDF document")
    ingest_config = IngestConfig(
        parse=parse,
        file_types=FILE_TYPES,
        extractor=LocalExtractor(),
        tokenizer=ByteTokenizer(),
        embedder=WordLlamaEmbedder(),
    )

    def sources() -> Iterator[FoundSource]:
        return find_sources([tmp_path], root=tmp_path, file_types=FILE_TYPES)

    pool = await pool_of_sources(sources(), ingest_config, ignore_event)
    assert sorted(each.document_id for each in pool.chunks) == ["a.md", "b.md", "c.md", "d.md"]
    assert (pool.n_documents, pool.n_unreadable) == (5, 1)
    monkeypatch.setattr(sample, "MAX_DOCUMENTS", 2)
    few = await pool_of_sources(sources(), ingest_config, ignore_event)
    assert len({each.document_id for each in few.chunks}) <= 2 < few.n_documents
