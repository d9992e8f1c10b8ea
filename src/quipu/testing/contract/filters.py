"""Filters: what a view may see, decided before any search; what is excluded cannot show in any answer."""

import json
from collections.abc import Sequence

import pytest

from quipu.errors import InvalidInput
from quipu.model.query import ComparisonOperator, Condition, Filter
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
    only_entity,
    publish,
)
from quipu.testing.facts import alias, claim, document, entity, passage, relation

_DATED = (
    document(
        "letters/a",
        "One.",
        metadata={
            "year": 1271,
            "weight": 1.5,
            "region": "Asia",
            "tags": ("trade", "Silk"),
            "checked": True,
            "date": "1271-05-01",
        },
    ),
    document(
        "letters/b",
        "Two.",
        metadata={"year": 1325, "region": "Africa", "tags": ("travel",), "checked": False, "date": "1325"},
    ),
    document("notes/c", "Three.", metadata={"none": None, "empty": ()}),
)
_A, _B, _C = (chunk.id for chunk in _DATED)

_CONDITIONS: tuple[tuple[str, ComparisonOperator, str, set[str]], ...] = (
    ("region", "=", "Asia", {_A}),
    ("region", "=", "aSIA", {_A}),
    ("region", "=", "Asi", set()),
    ("region", "!=", "Asia", {_B, _C}),
    ("region", "<", "asia", {_B}),
    ("region", "<=", "asia", {_A, _B}),
    ("region", ">", "africa", {_A}),
    ("region", ">=", "africa", {_A, _B}),
    ("region", "in", "Asia, Africa", {_A, _B}),
    ("region", "in", "Europe,asia", {_A}),
    ("region", "contains", "SI", {_A}),
    ("region", "contains", "%", set()),
    ("region", "exists", "", {_A, _B}),
    ("year", "=", "1271", {_A}),
    ("year", "=", "1271.0", {_A}),
    ("year", "!=", "1271", {_B, _C}),
    ("year", "<", "1325", {_A}),
    ("year", "<=", "1325", {_A, _B}),
    ("year", ">", "999", {_A, _B}),
    ("year", ">=", "1300", {_B}),
    ("year", "in", "1325, 7", {_B}),
    ("year", ">", "long ago", set()),
    ("weight", ">", "1.25", {_A}),
    ("weight", "<", "1.25", set()),
    ("tags", "=", "silk", {_A}),
    ("tags", "!=", "trade", {_B, _C}),
    ("tags", "in", "silk,travel", {_A, _B}),
    ("tags", "contains", "tra", {_A, _B}),
    ("tags", "exists", "", {_A, _B}),
    ("checked", "=", "true", {_A}),
    ("checked", "=", "False", {_B}),
    ("checked", "!=", "true", {_B, _C}),
    ("checked", "=", "1", set()),
    ("none", "exists", "", set()),
    ("empty", "exists", "", set()),
    ("nowhere", "exists", "", set()),
    ("nowhere", "=", "", set()),
    ("nowhere", "!=", "x", {_A, _B, _C}),
)

_DATES: tuple[tuple[str, str, set[str]], ...] = (
    ("", "1300", {_A}),
    ("1300", "", {_B}),
    ("1271-05-01", "", {_A, _B}),
    ("1271-05-02", "", {_B}),
    ("", "1271-05-01", {_A}),
    ("", "1271-04-30", set()),
    ("", "1271", {_A}),
    ("1271", "1325", {_A, _B}),
    ("1271-05", "1271-05", {_A}),
    ("1400", "", set()),
)

# "spy" says things nobody else says, among them of entities that others name too.
_SPOKEN = (
    document(
        "open/a",
        passage(
            "Venice and Acre trade. The WHO listens.",
            entity("Venice", "Location", "Venice is a republic."),
            entity("Acre", "Location"),
            relation("Venice", "Acre", "They trade.", keywords=("trade",), weight=1.5),
        ),
        "Quisling stands here without being mentioned.",
        title="Venice",
    ),
    document(
        "open/b",
        passage(
            "The World Health Organization met in Venice.",
            entity("World Health Organization"),
            entity("venice", "Location", "A town."),
            relation("World Health Organization", "venice", keywords=("meeting",)),
        ),
        title="Venice",
    ),
    document(
        "spy",
        passage(
            "Secret: VENICE betrays Acre to Quisling.",
            entity("Venice!", "Secretive", "A secret definition.", is_definition=True),
            entity("Venice!", "Secretive"),
            entity("Venice!", "Secretive"),
            entity("Acre", "Secretive", "A secret port."),
            entity("Quisling", "Secretive", "A secret man."),
            entity("World Health Organization"),
            relation("Acre", "Venice", "A secret war.", keywords=("secret",), weight=9.0),
            relation("Quisling", "Venice", "A secret bribe.", keywords=("secret",)),
            relation("World Health Organization", "Acre", "A secret plague."),
            alias("World Health Organization", "WHO"),
            alias("Acre", "Secret Harbour"),
            alias("Quisling", "Venice"),
            claim("World Health Organization", "A secret fraud.", "Quisling"),
            claim("Acre", "A secret fraud."),
        ),
        title="Secret",
    ),
)
_OPEN = Filter(documents=("open/*",))


async def _seen(store: Store, allowed: Filter) -> list[str]:
    async with store.view(allowed) as view:
        return [doc.id for doc in await view.documents()]


async def _read_targets(store: Store, words: Sequence[str]) -> ReadTargets:
    """Return all there is to ask about, filter or not."""
    lines = [json.loads(line) for line in await dump(store)]
    keys = sorted({line["key"] for line in lines if line["kind"] == "entity"})
    aliases = sorted({line["alias"] for line in lines if line["kind"] == "alias"})
    return ReadTargets(
        documents=sorted(line["id"] for line in lines if line["kind"] == "document"),
        chunks=sorted(line["id"] for line in lines if line["kind"] == "chunk"),
        keys=[*keys, *(alias_name for alias_name in aliases if alias_name not in keys)],
        relations=sorted(f"{line['source']} -- {line['target']}" for line in lines if line["kind"] == "relation"),
        words=words,
    )


class FiltersContract:
    """What is promised of filtered views."""

    @pytest.mark.parametrize(("field", "comparison", "value", "expected"), _CONDITIONS)
    async def test_conditions_compare_metadata(
        self, open_store: OpenStore, field: str, comparison: ComparisonOperator, value: str, expected: set[str]
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DATED)
            allowed = Filter(where=(Condition(field=field, operator=comparison, value=value),))
            assert set(await _seen(store, allowed)) == expected

    @pytest.mark.parametrize(("after", "before", "expected"), _DATES)
    async def test_dates_are_inclusive_at_the_precision_given(
        self, open_store: OpenStore, after: str, before: str, expected: set[str]
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DATED)
            assert set(await _seen(store, Filter(after=after, before=before))) == expected

    @pytest.mark.parametrize(
        ("allowed", "is_seen"),
        [
            (Filter(before="2001"), True),
            (Filter(after="1990"), True),
            (Filter(after="1990-01-01"), False),
            (Filter(after="1985-01-01", before="1995-01-01"), True),
            (Filter(before="1989"), False),
            (Filter(after="1991"), False),
        ],
    )
    async def test_a_year_given_as_a_number_is_a_date(
        self, open_store: OpenStore, allowed: Filter, is_seen: bool
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One.", metadata={"date": 1990}))
            assert await _seen(store, allowed) == (["a"] if is_seen else [])

    @pytest.mark.parametrize(
        ("allowed", "expected"),
        [
            (Filter(documents=(_A,)), {_A}),
            (Filter(documents=("letters/*",)), {_A, _B}),
            (Filter(documents=("*/?",)), {_A, _B, _C}),
            (Filter(documents=("notes/*", _A)), {_A, _C}),
            (Filter(documents=("LETTERS/*",)), set()),
            (Filter(documents=("letters",)), set()),
            (Filter(exclude=("letters/*",)), {_C}),
            (Filter(exclude=(_A, "notes/?")), {_B}),
            (Filter(documents=("letters/*",), exclude=("*/b",)), {_A}),
            (Filter(documents=("letters/*",), where=(Condition(field="year", operator=">", value="1300"),)), {_B}),
            (
                Filter(
                    where=(
                        Condition(field="year", operator="exists"),
                        Condition(field="tags", operator="=", value="silk"),
                    )
                ),
                {_A},
            ),
            (Filter(exclude=("nowhere",)), {_A, _B, _C}),
        ],
    )
    async def test_ids_and_patterns_choose_documents_and_all_parts_must_hold(
        self, open_store: OpenStore, allowed: Filter, expected: set[str]
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DATED)
            assert set(await _seen(store, allowed)) == expected

    async def test_other_signs_of_a_pattern_mean_themselves(self, open_store: OpenStore) -> None:
        ids = ["50%", "500", "a_b", "aXb", "back\\slash"]
        async with open_store() as store:
            await publish(store, *(document(document_id, "One.") for document_id in ids))
            for document_id in ids:
                assert await _seen(store, Filter(documents=(document_id,))) == [document_id]
            assert await _seen(store, Filter(documents=("a_*",))) == ["a_b"]
            assert await _seen(store, Filter(documents=("*\\*",))) == ["back\\slash"]

    @pytest.mark.parametrize(
        "condition",
        [
            Condition(field="year", operator="~"),  # type: ignore[arg-type]
            Condition(field=" ", operator="=", value="1"),
        ],
    )
    async def test_a_filter_that_cannot_be_read_is_refused(self, open_store: OpenStore, condition: Condition) -> None:
        async with open_store() as store:
            await publish(store, *_DATED)
            with pytest.raises(InvalidInput) as caught:
                await _seen(store, Filter(where=(condition,)))
            assert caught.value.remedy
            assert len(await _seen(store, Filter(documents=(_A,)))) == 1

    async def test_an_update_of_metadata_moves_a_document_in_and_out(self, open_store: OpenStore) -> None:
        allowed = Filter(where=(Condition(field="region", operator="=", value="asia"),))
        async with open_store() as store:
            await publish(store, document("a", "One.", metadata={"region": "Asia"}))
            assert await _seen(store, allowed) == ["a"]
            await publish(store, document("a", "One.", metadata={"region": "Europe"}))
            assert await _seen(store, allowed) == []

    async def test_a_filtered_view_is_an_index_of_the_allowed_documents_alone(self, open_store: OpenStore) -> None:
        async with open_store("all") as store:
            await publish(store, *_SPOKEN)
            targets = await _read_targets(store, ("venice", "quisling", "organization"))
            async with store.view(_OPEN) as view:
                filtered = await everything(view, targets)
        async with open_store("allowed") as store:
            await publish(store, *_SPOKEN[:2])
            async with store.view() as view:
                alone = await everything(view, targets)
        for read, expected in alone.items():
            assert filtered[read] == expected, read

    async def test_nothing_an_excluded_document_says_shows_in_any_answer(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_SPOKEN)
            targets = await _read_targets(store, ("venice", "secret", "quisling"))
            async with store.view(_OPEN) as view:
                answers = {
                    **await everything(view, targets),
                    "full text": await view.search_text(NodeKind.CHUNK, "secret betrays", 10),
                }
            async with store.view() as view:
                hidden = [chunk.id for chunk in await view.chunks(document_id="spy")]
        for read, answer in answers.items():
            assert "ecret" not in repr(answer), read
            assert not any(chunk_id in repr(answer) for chunk_id in hidden), read

    async def test_entities_are_folded_again_from_allowed_mentions(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_SPOKEN)
            whole = await only_entity(store, "venice")
            allowed = await only_entity(store, "venice", _OPEN)
        assert (whole.name, whole.type, whole.n_mentions) == ("Venice!", "Secretive", 5)
        assert (allowed.name, allowed.type) == ("Venice", "Location")
        assert sorted(allowed.description.split("\n")) == ["A town.", "Venice is a republic."]
        assert (allowed.n_mentions, allowed.n_chunks, allowed.degree) == (2, 2, 2)

    async def test_most_mentioned_means_among_the_allowed(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(
                store,
                document("a", passage("x", entity("Port Acre"), entity("Port Tyre"), entity("Port Tyre"))),
                document("b", passage("y", *[entity("Port Acre")] * 5)),
            )
            async with store.view() as view:
                assert [hit.id for hit in await view.search_text(NodeKind.ENTITY, "port", 1)] == ["port acre"]
            async with store.view(Filter(documents=("a",))) as view:
                assert [hit.id for hit in await view.search_text(NodeKind.ENTITY, "port", 1)] == ["port tyre"]

    async def test_counts_and_dump_are_those_of_the_whole_index(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_SPOKEN)
            async with store.view() as view:
                whole = await view.counts()
            async with store.view(_OPEN) as view:
                assert await view.counts() == whole

    async def test_vectors_allowed_are_those_with_an_allowed_owner(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, *_SPOKEN)
            await embed(store)
            async with store.view() as view:
                assert [await view.allowed_numbers(space) for space in VectorSpace] == [None] * len(VectorSpace)
                rows = {space: (await view.vectors(space)).rows.tolist() for space in VectorSpace}
            async with store.view(_OPEN) as view:
                for space in VectorSpace:
                    allowed = await view.allowed_numbers(space)
                    assert allowed is not None
                    owners = await view.vector_owners(space, rows[space])
                    assert allowed.tolist() == sorted(owners)
                chunks = await view.vector_owners(VectorSpace.CHUNK, rows[VectorSpace.CHUNK])
                entities = await view.vector_owners(VectorSpace.ENTITY, rows[VectorSpace.ENTITY])
                relations = await view.vector_owners(VectorSpace.RELATION, rows[VectorSpace.RELATION])
                entity_rows = await view.numbers(VectorSpace.ENTITY, ["quisling", "venice"])
                between = await view.numbers(VectorSpace.RELATION, ["acre -- venice", "quisling -- venice"])
                every_chunk = [
                    chunk.id for name in ("open/a", "open/b") for chunk in await view.chunks(document_id=name)
                ]
            async with store.view(Filter(documents=("nowhere",))) as view:
                nothing = await view.allowed_numbers(VectorSpace.CHUNK)
        assert sorted(owner for owner_ids in chunks.values() for owner in owner_ids) == sorted(every_chunk)
        assert sorted(entities.values()) == [("acre",), ("venice",), ("world health organization",)]
        assert sorted(relations.values()) == [("acre -- venice",), ("venice -- world health organization",)]
        assert list(entity_rows) == ["venice"]
        assert list(between) == ["acre -- venice"]
        assert nothing is not None
        assert nothing.tolist() == []

    async def test_a_shared_vector_row_names_only_allowed_owners(self, open_store: OpenStore) -> None:
        documents = [document(name, "The same words.") for name in ("a", "b", "c")]
        ids = [document.chunks[0].chunk.id for document in documents]
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, *documents)
            await embed(store)
            async with store.view(Filter(exclude=("b",))) as view:
                allowed = await view.allowed_numbers(VectorSpace.CHUNK)
                assert allowed is not None
                assert await view.vector_owners(VectorSpace.CHUNK, allowed.tolist()) == {
                    int(allowed[0]): tuple(sorted((ids[0], ids[2])))
                }
                assert len(await view.numbers(VectorSpace.CHUNK, ids)) == 2
