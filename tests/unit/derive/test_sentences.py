"""Tests of sentences: each chunk is divided once, equal sentences share a vector, and all goes with the chunk."""

import json
from pathlib import Path

import pytest

from quipu.derive import sentences
from quipu.derive.derivation import DerivationContext
from quipu.errors import Unavailable
from quipu.model.delta import CommitResult, Delta
from quipu.model.derivation import SENTENCES, Freshness
from quipu.model.ids import sentence_id
from quipu.model.query import Filter
from quipu.ports.store import VectorSpace
from quipu.testing.facts import document
from tests.unit.derive.workshop import dump, open_bench, publish, remove

_A = document("a", "Marco left Venice. He never came back.", "长城在北方。马可没有提到长城。")
_B = document("b", "Марко не видел стену. Стена длинная.", "He never came back.")


async def _spans(context: DerivationContext) -> list[tuple[str, int, str]]:
    async with context.store.view() as view:
        ids = [chunk.id for name in "ab" for chunk in await view.chunks(document_id=name)]
        found = await view.sentences(ids)
    return [(each.chunk, each.ordinal, each.text) for chunk in ids for each in found.get(chunk, [])]


def _said(text: str) -> list[str]:
    return [each for each in text.split("|") if each]


async def test_chunks_are_divided_and_embedded(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _A, _B)
        report = await sentences.refresh(context, False)
        assert (report.n_built, report.n_unchanged) == (7, 0)
        expected = _said(
            "Marco left Venice.|He never came back.|长城在北方。|马可没有提到长城。|"
            "Марко не видел стену.|Стена длинная.|He never came back."
        )
        found = await _spans(context)
        assert [text for _, _, text in found] == expected
        async with context.store.view() as view:
            rows = await view.numbers(VectorSpace.SENTENCE, [sentence_id(chunk, n) for chunk, n, _ in found])
            assert len(rows) == 7
            assert len(set(rows.values())) == 6  # equal sentences share a vector
            owners = await view.vector_owners(VectorSpace.SENTENCE, sorted(set(rows.values())))
            assert sorted(each for ids in owners.values() for each in ids) == sorted(rows)
        assert await context.store.verify() == []


async def test_only_new_chunks_are_divided_and_those_that_go_take_theirs_along(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _A)
        await sentences.refresh(context, False)
        await publish(context, _B)
        async with context.store.view() as view:
            assert len(await view.pending(SENTENCES, 10)) == 2
            assert (await sentences.read_state(view, context)).freshness is Freshness.STALE
        report = await sentences.refresh(context, False)
        assert (report.n_built, report.n_unchanged) == (3, 4)
        state = await dump(context)
        await remove(context, "a")
        left = [json.loads(line) for line in await dump(context)]
        assert sum(each["kind"] == "sentence" for each in left) == 3
        assert sum(each["kind"] == "vector" and each["space"] == VectorSpace.SENTENCE for each in left) == 3
        assert await context.store.verify() == []
        await publish(context, _A)
        await sentences.refresh(context, False)
        assert await dump(context) == state
        await sentences.refresh(context, True)
        assert await dump(context) == state


async def test_nothing_is_done_twice(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _A, document("blank", "\n \u3000"))
        await sentences.refresh(context, False)
        async with context.store.view() as view:
            revision = view.revision
            state = await sentences.read_state(view, context)
        assert (state.freshness, state.n_items, state.n_stale, state.cost.n_texts) == (Freshness.FRESH, 4, 0, 0)
        assert state.n_bytes == 4 * 2 * context.embedder.dimension
        await sentences.refresh(context, False)
        async with context.store.view() as view:
            assert view.revision == revision


async def test_a_filter_hides_sentences_of_other_documents(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _A, _B)
        await sentences.refresh(context, False)
        async with context.store.view(Filter(documents=("b",))) as view:
            chunks = [facts.chunk.id for facts in (*_A.chunks, *_B.chunks)]
            assert list(await view.sentences(chunks)) == chunks[2:]
            ids = [sentence_id(chunk, 0) for chunk in chunks]
            rows = await view.numbers(VectorSpace.SENTENCE, ids)
            assert sorted(rows) == sorted(ids[2:])
            allowed = await view.allowed_numbers(VectorSpace.SENTENCE)
            assert allowed is not None
            assert len(allowed) == 3
            owners = await view.vector_owners(VectorSpace.SENTENCE, allowed.tolist())
            assert {each.partition("#")[0] for ids in owners.values() for each in ids} == set(chunks[2:])


async def test_before_the_first_refresh_the_state_tells_what_it_would_cost(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        await context.store.commit(Delta(publish=[_A]))
        async with context.store.view() as view:
            state = await sentences.read_state(view, context)
        assert (state.freshness, state.contents, state.n_items, state.n_stale) == (Freshness.MISSING, "", 0, 2)
        assert state.cost.n_texts == 4


async def test_what_many_chunks_would_cost_is_told_from_some_of_them(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as context:
        short = document("short", *(f"Yes {n}. No. Why?" for n in range(400)))
        long = document("long", *(f"She went {'on and ' * (n % 5)}on." for n in range(200)))
        await context.store.commit(Delta(publish=[short, long]))
        async with context.store.view() as view:
            expected = (await sentences.read_state(view, context)).cost.n_texts
        report = await sentences.refresh(context, False)
        assert report.n_built == 1_400
        assert expected == pytest.approx(1_400, rel=0.1)


async def test_by_other_rules_all_chunks_are_divided_anew_even_where_that_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bench(tmp_path) as context:
        await publish(context, _A, _B)
        await sentences.refresh(context, False)
        monkeypatch.setattr(sentences, "_IDENTITY", "sentences/next")
        monkeypatch.setattr(sentences, "sentence_spans", lambda text: [(0, len(text))])
        commit = context.store.commit

        async def cut_short(delta: Delta) -> CommitResult:
            if delta.sentences:
                raise Unavailable("The disk is full.")
            return await commit(delta)

        with monkeypatch.context() as patched:
            patched.setattr(context.store, "commit", cut_short)
            with pytest.raises(Unavailable):
                await sentences.refresh(context, False)
        async with context.store.view() as view:
            assert (await sentences.read_state(view, context)).freshness is Freshness.STALE
        await sentences.refresh(context, False)
        texts = [text for _, _, text in await _spans(context)]
        async with context.store.view() as view:
            assert texts == [each.text for name in "ab" for each in await view.chunks(document_id=name)]
            assert (await sentences.read_state(view, context)).freshness is Freshness.FRESH
