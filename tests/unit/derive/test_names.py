"""Tests of names and synonyms: a pair depends on its two names alone, not on the order of documents."""

import json
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quipu.derive import names
from quipu.derive.derivation import DerivationContext
from quipu.errors import Unavailable
from quipu.model.delta import CommitResult, Delta, DocumentFacts, SynonymPair, SynonymUpdate, VectorRow
from quipu.model.derivation import NAMES, SYNONYMS, Freshness
from quipu.model.query import Filter
from quipu.testing.contract.steps import synonyms as synonyms_of
from quipu.testing.facts import document, entity, passage
from quipu.text.names import entity_key
from tests.unit.derive.workshop import dump, open_bench, publish, remove

_WORDS = ("north", "sea", "trading", "company", "royal", "west", "old", "port")


def _named(document_id: str, *surfaces: str) -> DocumentFacts:
    return document(document_id, passage(f"{document_id} names {', '.join(surfaces)}.", *map(entity, surfaces)))


async def _refresh(context: DerivationContext, *, rebuild: bool = False) -> None:
    await names.refresh_names(context, rebuild)
    await names.refresh_synonyms(context, rebuild)


async def _pairs(context: DerivationContext) -> dict[tuple[str, str], int]:
    records = [json.loads(line) for line in await dump(context)]
    return {(each["first"], each["second"]): each["similarity"] for each in records if each["kind"] == "synonym"}


async def _expected(context: DerivationContext, *surfaces: str) -> dict[tuple[str, str], int]:
    """Return the pairs there should be, from the definition: every two names, one cosine each."""
    known = {entity_key(each): each for each in surfaces}
    vectors = dict(zip(known, await context.embedder.embed(list(known.values())), strict=True))
    half = {key: vector.astype(np.float16).astype(np.float64) for key, vector in vectors.items()}
    cosines = {pair: round(float(half[pair[0]] @ half[pair[1]]), 6) for pair in combinations(sorted(half), 2)}
    long = [key for key in known if sum(c.isalnum() for c in key) > 2]
    return {
        pair: round(cosine * 1_000_000) for pair, cosine in cosines.items() if cosine >= 0.8 and set(pair) <= set(long)
    }


def _random_names(random: Random, n: int) -> list[str]:
    return [" ".join(random.sample(_WORDS, random.randint(3, 6))) for _ in range(n)]


async def test_pairs_are_those_of_the_definition(tmp_path: Path) -> None:
    surfaces = _random_names(Random(1), 40)
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", *surfaces))
        await _refresh(context)
        expected = await _expected(context, *surfaces)
        assert await _pairs(context) == expected
        assert len(expected) > 10


@pytest.mark.parametrize("seed", range(4))
async def test_any_history_gives_the_pairs_of_its_survivors(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "NAMES_PER_COMMIT", 3)
    random = Random(seed)
    live: dict[str, DocumentFacts] = {}
    async with open_bench(tmp_path / "history") as context:
        for _ in range(8):
            name = random.choice("abcd")
            if random.random() < 0.3:
                live.pop(name, None)
                await remove(context, name)
            else:
                live[name] = _named(name, *_random_names(random, 4))
                await publish(context, live[name])
            if random.random() < 0.6:
                await _refresh(context)
            assert await context.store.verify() == []
        await _refresh(context)
        state = await dump(context)
        await _refresh(context, rebuild=True)
        assert await dump(context) == state
    async with open_bench(tmp_path / "fresh") as context:
        await publish(context, *live.values())
        await _refresh(context)
        assert await dump(context) == state


async def test_a_pair_goes_with_the_name_in_the_same_commit(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(
            context,
            _named("a", "Royal North Sea Company"),
            _named("b", "Royal North Sea Trading Company", "Old Port of Acre"),
        )
        await _refresh(context)
        pair = ("royal north sea company", "royal north sea trading company")
        assert list(await _pairs(context)) == [pair]
        async with context.store.view() as view:
            assert await synonyms_of(view, [*pair, "nobody"]) == {
                pair[0]: [(pair[1], 0.894531)],
                pair[1]: [(pair[0], 0.894531)],
            }
        async with context.store.view(Filter(documents=("a",))) as view:
            assert await synonyms_of(view, pair) == {}
        await remove(context, "b")
        assert await _pairs(context) == {}


async def test_an_entity_that_is_called_otherwise_now_is_compared_again(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", "Old Port Company"), _named("b", "OLD. port: company west"))
        await _refresh(context)
        before = await _pairs(context)
        assert list(before) == [("old port company", "old port company west")]
        renamed = document("c", passage("x", *[entity("Old Port Company!!! ")] * 3))
        await publish(context, renamed)
        assert await _pairs(context) == {}
        assert (await _state(context))[SYNONYMS] == (Freshness.STALE, 1)
        await _refresh(context)
        assert await _pairs(context) == before
        assert (await _state(context))[SYNONYMS] == (Freshness.FRESH, 0)


async def test_what_was_renamed_while_it_was_compared_is_left_out(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", "Old Port Company", "Old Port Company West"))
        await _refresh(context)
        async with context.store.view() as view:
            revision = view.revision
        await publish(context, document("c", passage("x", *[entity("Old Port Company!!! ")] * 3)))
        late = SynonymPair(first="old port company", second="old port company west", similarity=0.9)
        await context.store.commit(
            Delta(synonyms=SynonymUpdate(revision=revision, names=["old port company", "gone"], pairs=[late]))
        )
        assert await _pairs(context) == {}
        assert (await _state(context))[SYNONYMS] == (Freshness.STALE, 1)


async def test_only_new_names_are_compared(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", *_random_names(Random(2), 20)))
        await _refresh(context)
        await context.store.commit(Delta(publish=[_named("b", "Royal Old Port", "Sea of Names")]))
        async with context.store.view() as view:
            assert await view.pending(SYNONYMS, 100) == []  # not embedded, so not to be compared yet
        await names.refresh_names(context, False)
        async with context.store.view() as view:
            assert await view.pending(SYNONYMS, 100) == ["royal old port", "sea of names"]


async def test_short_names_have_no_synonyms_in_any_script(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", "A 1", "1, A", "长城", "长城!", "Великая стена", "«Великая» стена"))
        await _refresh(context)
        assert list(await _pairs(context)) == []  # what folds to one key is one entity
        await publish(context, _named("b", "стена Великая", "万里长城", "万里 长城 。"))
        await _refresh(context)
        assert list(await _pairs(context)) == [("великая стена", "стена великая")]


async def test_another_embedder_begins_anew(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", "Old Port Company", "Old Port Company West"))
        await _refresh(context)
        vector = np.array([1, 0], np.float16)
        async with context.store.reembedding("other", 2):
            while waiting := await context.store.texts_without_vector("other", 100):
                rows = [VectorRow(model="other", text_hash=each, vector=vector) for each in waiting]
                await context.store.commit(Delta(vectors=rows))
        assert await _pairs(context) == {}
        assert (await _state(context))[SYNONYMS] == (Freshness.STALE, 2)


async def test_names_are_missing_until_they_are_asked_for(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", "Old Port", "Sea"))
        assert await _state(context) == {NAMES: (Freshness.MISSING, 2), SYNONYMS: (Freshness.MISSING, 0)}
        report = await names.refresh_names(context, False)
        assert (report.n_built, report.n_unchanged) == (2, 0)
        await context.store.commit(Delta(publish=[_named("b", "West")]))
        assert (await _state(context))[NAMES] == (Freshness.STALE, 1)
        report = await names.refresh_names(context, False)
        assert (report.n_built, report.n_unchanged) == (1, 2)
        assert (await _state(context))[NAMES] == (Freshness.FRESH, 0)
        async with context.store.view() as view:
            revision = view.revision
        await _refresh(context)
        await _refresh(context)
        async with context.store.view() as view:
            assert view.revision == revision + 2  # synonyms begin, are found; nothing more to do


async def _state(context: DerivationContext) -> dict[str, tuple[Freshness, int]]:
    async with context.store.view() as view:
        states = [await names.read_names_state(view, context), await names.read_synonyms_state(view, context)]
    return {each.name: (each.freshness, each.n_stale) for each in states}


async def test_by_another_cosine_all_names_are_compared_anew_even_where_that_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _named("a", "Royal North Sea Company", "Royal North Sea Trading Company"))
        await _refresh(context)
        assert len(await _pairs(context)) == 1
        monkeypatch.setattr(names, "_SYNONYMS_IDENTITY", "synonyms/next")
        monkeypatch.setattr(names, "MIN_COSINE", 0.999)
        commit = context.store.commit

        async def cut_short(delta: Delta) -> CommitResult:
            committed = await commit(delta)
            if delta.derivations:
                raise Unavailable("The disk is full.")
            return committed

        with monkeypatch.context() as patched:
            patched.setattr(context.store, "commit", cut_short)
            with pytest.raises(Unavailable):
                await names.refresh_synonyms(context, False)
        await names.refresh_synonyms(context, False)
        assert await _pairs(context) == {}
