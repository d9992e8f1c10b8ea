"""Laws: the state is a function of the live documents alone, whatever order and company they came in."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import cast

import pytest

from quipu.model.delta import Delta, DocumentFacts
from quipu.model.graph import Entity, Relation
from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import Store, VectorSpace
from quipu.testing.contract.steps import (
    DIMENSION,
    MODEL,
    OpenStore,
    ReadTargets,
    dump,
    embed,
    everything,
    publish,
    remove,
    summarise,
)
from quipu.testing.facts import PassageSpec, alias, claim, document, entity, passage, relation

_WHO = "World Health Organization"
_NAMES = ("a", "b", "c", "d", "e")
_TITLES = ("", "Marco Polo", "WHO", "长城")
_KINDS = ("Person", "Location", "Other", "Unknown")
# Texts name what others mention, so that links cross documents.
_TEXTS = (
    "Marco Polo left Venice for the court of Kublai Khan.",
    "Who has seen the Great Wall? Not Marco Polo, says the WHO.",
    "长城在北方。马可·波罗没有提到长城。",
    "Марко Поло не видел Великую стену. Великая стена длинная.",
    "Nobody is named here.",
)
_ENTITIES = ("Marco Polo", "Venice", "WHO", _WHO, "长城", "马可·波罗", "Великая стена", "Great Wall", "the Great Wall")

# Fields that say when or where something is kept, not what.
_HISTORY = {"rid", "row", "version", "added_at", "updated_at", "revision", "job", "owner", "data"}


def version(name: str, number: int) -> DocumentFacts:
    """Return a version of a document: what a chunk says depends on its words and title alone, as with an extractor."""
    random = Random(f"{name} {number}")
    title = random.choice(_TITLES)
    texts = [random.choice(_TEXTS) for _ in range(random.randint(0, 4))]
    return document(
        name,
        *(_passage(text, title) for text in texts),
        title=title,
        metadata={"year": random.randint(1200, 1300), "tags": ("x",)},
    )


def _passage(text: str, title: str) -> PassageSpec:
    random = Random(f"{text} {title}")
    names = random.sample(_ENTITIES, 4)
    described = [
        entity(
            name,
            random.choice(_KINDS),
            f"{name} in {len(text)} {title}. {text * random.randint(0, 8)}",  # long: a few are more than are shown
            is_definition=random.random() < 0.3,
        )
        for name in names
    ]
    pairs = [pair for pair in pairwise(names) if entity(pair[0]).key != entity(pair[1]).key]
    related = [relation(*pair, f"{pair} {text * 10}", keywords=(random.choice("klm"),), weight=0.1) for pair in pairs]
    stated = [alias(names[0], "WHO")] if random.random() < 0.5 else []
    claimed = [claim(names[0], f"{names[0]} lied: {text}", random.choice(["", *names[1:]])) for _ in range(2)]
    return passage(text, *described, *related, *stated, *claimed[: random.randint(0, 2)])


def history(random: Random) -> Iterator[Delta]:
    """Yield changes of a few documents: batches of new versions and removals."""
    for _ in range(random.randint(3, 8)):
        names = random.sample(_NAMES, random.randint(1, 4))
        n_kept = random.randint(0, len(names))
        yield Delta(publish=[version(name, random.randint(1, 3)) for name in names[:n_kept]], remove=names[n_kept:])


def survivors(history: Sequence[Delta]) -> dict[str, DocumentFacts]:
    """Return the documents that are live after these changes."""
    live: dict[str, DocumentFacts] = {}
    for delta in history:
        live.update({facts.id: facts for facts in delta.publish})
        for name in delta.remove:
            live.pop(name, None)
    return live


async def _read_targets(store: Store) -> ReadTargets:
    """Return all there is to ask about, and more."""
    lines = [json.loads(line) for line in await dump(store)]
    return ReadTargets(
        documents=_NAMES,
        chunks=[line["id"] for line in lines if line["kind"] == "chunk"],
        keys=[entity(name).key for name in _ENTITIES],
        relations=[f"{line['source']} -- {line['target']}" for line in lines if line["kind"] == "relation"],
        words=("wall", "marco", "长"),
    )


async def _answers(store: Store) -> dict[str, object]:
    targets = await _read_targets(store)
    async with store.view() as view:
        searched = [await view.search_text(NodeKind.CHUNK, name, 50) for name in ("marco polo", "长城", "who")]
        return {**await everything(view, targets), "full text": searched}


def _described(answers: dict[str, object]) -> dict[str, str]:
    """Return what is shown of each entity and relation."""
    entities, relations = cast("list[Entity]", answers["entities"]), cast("list[Relation]", answers["relations"])
    return {node.key: node.description for node in entities} | {edge.id: edge.description for edge in relations}


class LawsContract:
    """What is promised of histories."""

    @pytest.mark.parametrize("seed", range(12))
    async def test_any_history_ends_in_the_state_of_its_survivors(self, open_store: OpenStore, seed: int) -> None:
        random = Random(seed)
        steps = list(history(random))
        live = survivors(steps)
        async with open_store("history") as store:
            await store.set_embedder(MODEL, DIMENSION)
            for step in steps:
                await store.commit(step)
                if random.random() < 0.5:
                    await summarise(store)
                if random.random() < 0.5:
                    await embed(store)
                assert await store.verify() == []
            await summarise(store)
            await embed(store)
            assert await store.verify() == []
            state, answers = await dump(store), await _answers(store)
        async with open_store("fresh") as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, *live.values())
            await summarise(store)
            await embed(store)
            assert await dump(store) == state
            fresh = await _answers(store)
        for read, expected in fresh.items():
            assert answers[read] == expected, read

    @pytest.mark.parametrize("seed", range(6))
    async def test_any_order_and_batching_gives_the_same_state(self, open_store: OpenStore, seed: int) -> None:
        random = Random(seed)
        documents = [version(name, seed % 3) for name in _NAMES]
        async with open_store("at once") as store:
            await publish(store, *documents)
            await summarise(store)
            expected = await dump(store)
        random.shuffle(documents)
        cut = random.randint(1, len(documents))
        async with open_store("in parts") as store:
            await publish(store, *documents[:cut])
            for facts in documents[cut:]:
                await summarise(store)
                await publish(store, facts)
            await summarise(store)
            assert await dump(store) == expected
            await store.commit(Delta(rebuild_text=True))
            assert await dump(store) == expected
            assert await store.verify(facts_only=True) == await store.verify(losses_only=True) == []
            await store.commit(Delta(repair=True))
            assert (await store.verify(), await dump(store)) == ([], expected)
            await remove(store, *_NAMES)
            assert await dump(store) == []

    @pytest.mark.parametrize("seed", range(8))
    async def test_a_filter_gives_the_answers_of_the_allowed_documents_alone(
        self, open_store: OpenStore, seed: int
    ) -> None:
        random = Random(seed)
        documents = [version(name, seed % 3) for name in _NAMES]
        allowed = random.sample(documents, random.randint(1, 4))
        async with open_store("all") as store:
            await publish(store, *documents)
            targets = await _read_targets(store)
            async with store.view(Filter(documents=tuple(document.id for document in allowed))) as view:
                filtered = await everything(view, targets)
                hit_ids = {hit.id for hit in await view.search_text(NodeKind.CHUNK, "marco polo 长城", 50)}
        async with open_store("allowed") as store:
            await publish(store, *allowed)
            async with store.view() as view:
                alone = await everything(view, targets)
                assert hit_ids == {hit.id for hit in await view.search_text(NodeKind.CHUNK, "marco polo 长城", 50)}
        for read, expected in alone.items():
            assert filtered[read] == expected, read

    @pytest.mark.parametrize("seed", range(8))
    async def test_under_a_filter_a_summary_is_seen_where_it_is_that_of_the_allowed_documents(
        self, open_store: OpenStore, seed: int
    ) -> None:
        documents = [version(name, seed % 3) for name in _NAMES]
        allowed = Random(seed).sample(documents, 4)
        async with open_store("all") as store:
            await publish(store, *documents)
            targets = await _read_targets(store)
            everywhere = {summary.inputs_hash for summary in await summarise(store)}
            async with store.view(Filter(documents=tuple(document.id for document in allowed))) as view:
                filtered = _described(await everything(view, targets))
        async with open_store("allowed") as store:
            await publish(store, *allowed)
            async with store.view() as view:
                expected = _described(await everything(view, targets))
            shared = [summary for summary in await summarise(store) if summary.inputs_hash in everywhere]
        assert filtered == expected | {summary.target.id: summary.text for summary in shared}

    @pytest.mark.parametrize("seed", range(6))
    async def test_whoever_follows_the_vectors_by_revision_knows_all_of_them(
        self, open_store: OpenStore, seed: int
    ) -> None:
        random = Random(seed)
        rows_by_space: dict[VectorSpace, set[int]] = {space: set() for space in VectorSpace}
        last = dict.fromkeys(VectorSpace, -1)
        revision = 0
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            for step in history(random):
                await store.commit(step)
                if random.random() < 0.7:
                    await embed(store)
                if random.random() < 0.5:
                    continue
                async with store.view() as view:
                    for space in VectorSpace:
                        block = await view.vectors(space, last[space], since=revision)
                        assert block.deleted is not None
                        later = block.rows.tolist()
                        rows_by_space[space] = (rows_by_space[space] | set(later)) - set(block.deleted.tolist())
                        last[space] = max([last[space], *later])
                        assert sorted(rows_by_space[space]) == (await view.vectors(space)).rows.tolist()
                    revision = view.revision

    async def test_the_dump_is_ordered_json_of_what_is_said_and_not_of_how_it_came(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, *(version(name, 1) for name in _NAMES))
            await summarise(store)
            await embed(store)
            lines = await dump(store)
        records = [json.loads(line) for line in lines]
        kinds = [record["kind"] for record in records]
        assert kinds == sorted(kinds)
        assert set(kinds) == {
            "alias",
            "chunk",
            "claim",
            "document",
            "entity",
            "entity_mention",
            "link",
            "relation",
            "relation_mention",
            "summary",
            "vector",
        }
        for record, line in zip(records, lines, strict=True):
            assert not _HISTORY & record.keys()
            assert line == json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    async def test_the_dump_holds_all_a_document_says(self, open_store: OpenStore) -> None:
        left_passage = passage(
            "Marco Polo left 长城.",
            entity("Marco Polo", "Person", "A merchant.", is_definition=True),
            entity("长城", "Location"),
            relation("长城", "Marco Polo", "He left it.", keywords=("way",), weight=0.25),
            alias("Marco Polo", "Messer Marco"),
            claim("Marco Polo", "He lied.", "长城", kind="lie", status="suspected", dates="1298"),
            claim("长城", "It is long."),
            headings=("Part I",),
        )
        facts = document("a", left_passage, title="Travels", metadata={"tags": ("x", "y")})
        chunk = facts.chunks[0].chunk
        async with open_store() as store:
            await publish(store, facts)
            records = [json.loads(line) for line in await dump(store)]
        by_kind: dict[str, list[dict[str, object]]] = {}
        for record in records:
            by_kind.setdefault(record.pop("kind"), []).append(record)
        (alias_,), (chunk_,), (document_,) = by_kind["alias"], by_kind["chunk"], by_kind["document"]
        assert alias_ == {
            "chunk": chunk.id,
            "ordinal": 0,
            "entity": "marco polo",
            "alias": "messer marco",
            "surface": "Messer Marco",
        }
        assert by_kind["claim"][0] == {
            "chunk": chunk.id,
            "ordinal": 0,
            "subject": "marco polo",
            "object": "长城",
            "type": "lie",
            "status": "suspected",
            "dates": "1298",
            "description": "He lied.",
        }
        assert [(line["subject"], line["object"]) for line in by_kind["claim"][1:]] == [("长城", "")]
        assert chunk_["text"] == chunk.text
        assert (chunk_["span"], chunk_["headings"], chunk_["document"]) == ([0, len(chunk.text)], ["Part I"], "a")
        assert (document_["title"], document_["metadata"]) == ("Travels", {"tags": ["x", "y"]})
        assert by_kind["entity_mention"][0]["description"] == "A merchant."
        assert by_kind["entity_mention"][0]["span"] == [0, 10]
        (mention,) = by_kind["relation_mention"]
        assert (mention["source"], mention["target"], mention["weight"]) == ("长城", "marco polo", 250)
        (folded,) = by_kind["relation"]
        assert (folded["source"], folded["target"], folded["weight"]) == ("marco polo", "长城", 250)
        assert [(line["name"], line["n"]) for line in by_kind["link"]] == [("marco polo", 1), ("长城", 1)]
        assert [line["key"] for line in by_kind["entity"]] == ["marco polo", "长城"]
