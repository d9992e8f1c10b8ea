"""Full text: BM25 over words of any script."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from quipu.model.delta import Delta
from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind
from quipu.testing.contract.steps import OpenStore, publish, remove
from quipu.testing.facts import document
from quipu.text.references import BEGINS, LINKS_TO, document_key
from quipu.text.words import index_terms, query_terms, split_words

_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6

_TEXTS = (
    "The Great Wall is long. The wall was built of earth and brick.",
    "Walls of brick; a wall, a wall, a wall.",
    "长城在北方，长城很长。",
    "俄国人说俄语。",
    "Великая стена длинная. Стена из кирпича.",
    "Don't panic: the café's C++ code was 1,000 lines.",
    "brick",
    "brick brick brick and nothing else at all in this rather longer passage about brick",
)


def bm25(texts: Sequence[str], query: str) -> dict[int, float]:
    """Return the BM25 scores of the texts that match (Robertson and Zaragoza 2009, with FTS5's floor under IDF)."""
    counts = [Counter(index_terms(split_words(text), text)) for text in texts]
    lengths = [sum(counter.values()) for counter in counts]
    mean = sum(lengths) / len(lengths)
    scores: dict[int, float] = {}
    for term in query_terms(query):
        n = sum(1 for counter in counts if counter[term])
        idf = max(math.log((len(texts) - n + 0.5) / (n + 0.5)), _LEAST_IDF) if n else 0.0
        for position, term_counts in enumerate(counts):
            if frequency := term_counts[term]:
                norm = _K1 * (1 - _B + _B * lengths[position] / mean)
                scores[position] = scores.get(position, 0.0) + idf * frequency * (_K1 + 1) / (frequency + norm)
    return scores


class FullTextContract:
    """What is promised of full text."""

    @pytest.mark.parametrize(
        ("query", "positions"),
        [
            ("wall", {0, 1}),
            ("WALL", {0, 1}),
            ("walls", {1}),
            ("стена", {4}),
            ("стеной", {4}),
            ("кирпичи", {4}),
            ("What is the wall?", {0, 1}),
            ("the", {0, 5}),
            ("長城", set()),
            ("长城", {2}),
            ("长", {2}),
            ("俄国", {3}),
            ("俄国长城", {2, 3}),
            ("cafe", {5}),
            ("café", {5}),
            ("don’t", {5}),
            ("c++", {5}),
            ("c", set()),
            ("wall стена 长城", {0, 1, 2, 4}),
            ("1,000", {5}),
            ("zanzibar", set()),
            ("", set()),
            ("?! …", set()),
        ],
    )
    async def test_words_of_any_script_are_found(self, open_store: OpenStore, query: str, positions: set[int]) -> None:
        facts = document("a", *_TEXTS)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                hits = await view.search_text(NodeKind.CHUNK, query, 10)
                texts = {chunk.text for chunk in await view.chunks([hit.id for hit in hits])}
        assert texts == {_TEXTS[position] for position in positions}

    @pytest.mark.parametrize(
        "text",
        ["' OR 1=1 --", '"', '"wall" OR', "wall*", "wall AND", "NEAR(wall brick)", "terms:wall", "(", "^wall", "-wall"],
    )
    async def test_signs_of_a_query_language_are_only_signs(self, open_store: OpenStore, text: str) -> None:
        async with open_store() as store:
            await publish(store, document("a", *_TEXTS))
            async with store.view() as view:
                signs = await view.search_text(NodeKind.CHUNK, text, 10)
                plain = " ".join(query_terms(text)).upper()  # in capitals, "AND" is a word to look for
                words = await view.search_text(NodeKind.CHUNK, plain, 10)
        assert signs == words

    @pytest.mark.parametrize("query", ["brick", "wall brick", "the wall", "长城很长", "стена из", "brick and the c++"])
    async def test_scores_are_bm25(self, open_store: OpenStore, query: str) -> None:
        facts = document("a", *_TEXTS)
        ids = [chunk_facts.chunk.id for chunk_facts in facts.chunks]
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                hits = await view.search_text(NodeKind.CHUNK, query, 10)
        expected = {ids[position]: score for position, score in bm25(_TEXTS, query).items()}
        assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-6)

    async def test_scores_follow_what_is_there_now(self, open_store: OpenStore) -> None:
        texts_left = _TEXTS[:6]
        facts = document("a", *texts_left)
        ids = [chunk_facts.chunk.id for chunk_facts in facts.chunks]
        async with open_store() as store:
            await publish(store, document("b", *_TEXTS[6:], *_TEXTS), document("a", *_TEXTS))
            await publish(store, facts)
            await remove(store, "b")
            async with store.view() as view:
                hits = await view.search_text(NodeKind.CHUNK, "wall of brick", 10)
        expected = {ids[position]: score for position, score in bm25(texts_left, "wall of brick").items()}
        assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-6)

    async def test_terms_and_keys_name_their_chunks_unless_too_many_have_them(self, open_store: OpenStore) -> None:
        texts = ("# Brick walls", "A brick, a brick.", "See [walls](b.md).", "Nothing.")
        facts = document("a.md", *texts)
        ids = [chunk_facts.chunk.id for chunk_facts in facts.chunks]
        linked, first = document_key(LINKS_TO, "b.md"), document_key(BEGINS, "a.md")
        terms = ["brick", "=brick wall", linked, first, "a", "zanzibar", "=zanzibar", "brick"]
        async with open_store() as store:
            await publish(store, facts, document("c.md", "Other brick."))
            async with store.view() as view:
                counts = await view.occurrences(OccurrenceKind.TERM, terms, 3)
                rare = await view.occurrences(OccurrenceKind.TERM, terms, 2)
                assert await view.occurrences(OccurrenceKind.TERM, [], 3) == {}
            async with store.view(Filter(documents=("a.md",))) as view:
                allowed = await view.occurrences(OccurrenceKind.TERM, terms, 3)
                hidden = await view.occurrences(OccurrenceKind.TERM, terms, 2)
            await remove(store, "c.md")
            async with store.view() as view:
                left = await view.occurrences(OccurrenceKind.TERM, terms, 2)
            assert await store.verify() == []
        keys = {"=brick wall": {ids[0]: 0}, linked: {ids[2]: 0}, first: {ids[0]: 0}}
        in_document = {ids[0]: 1, ids[1]: 2}
        assert counts["brick"].items() > in_document.items() and len(counts["brick"]) == 3
        assert {term: chunks for term, chunks in counts.items() if term not in ("brick", "a")} == keys
        assert "brick" not in rare | hidden  # how many have it is counted in the whole index
        assert allowed["brick"] == left["brick"] == in_document

    async def test_the_best_come_first_and_equal_scores_by_id(self, open_store: OpenStore) -> None:
        documents = [document(f"d{number}", "A wall of brick.") for number in range(9)]
        ids = sorted(document.chunks[0].chunk.id for document in documents)
        better = document("better", "Brick, brick, brick.")
        async with open_store() as store:
            await publish(store, *documents, better, *(document(f"other{n}", f"Nothing {n}.") for n in range(12)))
            async with store.view() as view:
                hits = await view.search_text(NodeKind.CHUNK, "brick", 100)
                assert [hit.id for hit in hits] == [better.chunks[0].chunk.id, *ids]
                assert [hit.id for hit in await view.search_text(NodeKind.CHUNK, "brick", 4)] == [
                    better.chunks[0].chunk.id,
                    *ids[:3],
                ]
                assert await view.search_text(NodeKind.CHUNK, "brick", 0) == []
        assert hits[0].score > hits[1].score == hits[9].score

    async def test_a_filter_comes_before_the_best_are_chosen(self, open_store: OpenStore) -> None:
        crowd = [document(f"crowd{number}", "Brick, brick, brick.") for number in range(20)]
        lone = document("lone", "There is one brick in this long passage of words.")
        async with open_store() as store:
            await publish(store, *crowd, lone)
            async with store.view(Filter(documents=("lone",))) as view:
                assert [hit.id for hit in await view.search_text(NodeKind.CHUNK, "brick", 3)] == [
                    lone.chunks[0].chunk.id
                ]
            async with store.view(Filter(exclude=("crowd1*",))) as view:
                assert len(await view.search_text(NodeKind.CHUNK, "brick", 100)) == 10

    async def test_a_chunk_is_found_by_the_title_of_its_document(self, open_store: OpenStore) -> None:
        before, after = document("a", "A wall.", title="Zanzibar"), document("a", "A wall.", title="Samarkand")
        async with open_store() as store:
            await publish(store, before)
            async with store.view() as view:
                assert [hit.id for hit in await view.search_text(NodeKind.CHUNK, "Zanzibar", 5)] == [
                    before.chunks[0].chunk.id
                ]
            await publish(store, after)
            async with store.view() as view:
                assert await view.search_text(NodeKind.CHUNK, "Zanzibar", 5) == []
                assert [hit.id for hit in await view.search_text(NodeKind.CHUNK, "samarkand", 5)] == [
                    after.chunks[0].chunk.id
                ]
            assert await store.verify() == []

    async def test_a_chunk_is_found_by_the_name_of_its_file(self, open_store: OpenStore) -> None:
        named = document("walls/clay_brick.v2.md", "A wall.", title="Zanzibar")
        repeated, unnamed = document("walls/zanzibar.md", "A wall.", title="Zanzibar"), document("adobe", "A wall.")
        async with open_store() as store:
            await publish(store, named, repeated, unnamed)
            async with store.view() as view:
                for word in ("clay", "BRICK", "v2"):
                    assert [hit.id for hit in await view.search_text(NodeKind.CHUNK, word, 5)] == [
                        named.chunks[0].chunk.id
                    ]
                for word in ("walls", "md", "adobe"):
                    assert await view.search_text(NodeKind.CHUNK, word, 5) == []
            assert await store.verify() == []
            await remove(store, named.id)
            async with store.view() as view:
                assert await view.search_text(NodeKind.CHUNK, "brick", 5) == []
            assert await store.verify() == []

    async def test_a_chunk_is_found_by_the_header_of_its_table(self, open_store: OpenStore) -> None:
        facts = document("a", "Anna | 7", "Berta | 9")
        first, second = facts.chunks
        with_header = replace(second, chunk=replace(second.chunk, header="Name | Shoesize"))
        async with open_store() as store:
            await publish(store, facts)
            await publish(store, replace(facts, chunks=(first, with_header)))
            async with store.view() as view:
                assert [hit.id for hit in await view.search_text(NodeKind.CHUNK, "shoesize", 5)] == [second.chunk.id]
                (second_chunk,) = await view.chunks([second.chunk.id])
                assert (second_chunk.header, second_chunk.text) == ("Name | Shoesize", "Berta | 9")
            assert await store.verify() == []
            await publish(store, facts)
            async with store.view() as view:
                assert await view.search_text(NodeKind.CHUNK, "shoesize", 5) == []
            assert await store.verify() == []

    async def test_an_option_of_a_command_is_found_as_it_is_written(self, open_store: OpenStore) -> None:
        texts = (
            "-a, --archive: all of a file",
            "-A keeps a list",
            "a well-a-day",
            "re-read what the team wrote",
            "-re reads",
        )
        async with open_store() as store:
            await publish(store, document("a", *texts))
            async with store.view() as view:
                for question, option in (
                    ("What does -a do?", 0),
                    ("What does -A do?", 1),
                    ("--archive?", 0),
                    ("-re", 4),
                ):
                    best, *_ = await view.search_text(NodeKind.CHUNK, question, 1)
                    assert [chunk.text for chunk in await view.chunks([best.id])] == [texts[option]]

    async def test_building_full_text_anew_changes_nothing(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", *_TEXTS), document("b", *_TEXTS[:3]))
            async with store.view() as view:
                before = await view.search_text(NodeKind.CHUNK, "wall brick 长城", 20)
            await store.commit(Delta(rebuild_text=True))
            async with store.view() as view:
                assert await view.search_text(NodeKind.CHUNK, "wall brick 长城", 20) == before
            assert await store.verify() == []
            await remove(store, "a", "b")
            assert await store.verify() == []
