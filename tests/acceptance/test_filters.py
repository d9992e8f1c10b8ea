"""Filters: of a document that is left out no strategy shows anything, and most find what they would without it."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from quipu.engine import Quipu
from quipu.model.document import SourceDocument
from quipu.model.query import Filter
from quipu.retrieve import STRATEGIES
from quipu.testing.llm import ScriptedLLM
from tests.acceptance.corpora import CHINESE, RUSSIAN
from tests.acceptance.derived import ids_in, sections
from tests.laws.derived_world import NAMES, keep_all, story
from tests.laws.model_world import dump_of, script, scripted_engine
from tests.laws.test_ghosts import document, words
from tests.laws.world import engine

HIDDEN = ("n3", "n5")
SHOWN = tuple(f"n{number}" for number in range(8) if f"n{number}" not in HIDDEN)
WITHOUT = Filter(exclude=tuple(f"{name}.md" for name in HIDDEN))
SECRETS = [word for name in HIDDEN for word in words(f"{name} 0")]
QUESTION = "What did Marco Polo and Kublai Khan say at the court of Shangdu?"


def opened(folder: Path, llm: ScriptedLLM | None) -> AbstractAsyncContextManager[Quipu]:
    """Open an engine with a scripted model, or without one."""
    return scripted_engine(folder, llm) if llm else engine(folder)


async def build(kb: Quipu, documents: Sequence[SourceDocument]) -> None:
    """Add documents and make all that is made on demand."""
    await kb.add(*documents)
    await keep_all(kb)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes, read by a model and not, of documents that have words and names of their own beside some they share."""
    return tmp_path_factory.mktemp("filters")


@pytest.fixture(scope="module")
def hidden(folder: Path) -> dict[bool, set[str]]:
    """What is not to be found in each of them."""

    async def fill(asks: bool) -> set[str]:
        async with opened(folder / f"{asks}", ScriptedLLM(script()) if asks else None) as kb:
            await build(kb, [document(name) for name in (*SHOWN, *HIDDEN)])
            return await hidden_ids(kb)

    return {asks: asyncio.run(fill(asks)) for asks in (False, True)}


async def hidden_ids(kb: Quipu) -> set[str]:
    """Return the ids of the chunks of hidden documents, and of entities and relations that only they tell of."""
    records = [json.loads(line) for line in await dump_of(kb)]
    chunks = {r["id"] for r in records if r["kind"] == "chunk" and r["document"] in WITHOUT.exclude}
    untold, told = set[str](), set[str]()
    for record in records:
        if record["kind"] == "entity_mention":
            (untold if record["chunk"] in chunks else told).add(record["entity"])
        elif record["kind"] == "relation_mention":
            ends = " -- ".join(sorted((record["source"], record["target"])))
            (untold if record["chunk"] in chunks else told).add(ends)
    assert len(untold - told) > 3
    return chunks | (untold - told)


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("name", list(STRATEGIES))
async def test_nothing_of_a_document_that_is_left_out_is_found_or_shown(
    name: str, asks: bool, folder: Path, hidden: dict[bool, set[str]]
) -> None:
    llm = ScriptedLLM(script())
    naming = f"What did {SECRETS[1].capitalize()} Polo say of {SECRETS[2].capitalize()} Khan and Shangdu?"
    async with opened(folder / f"{asks}", llm if asks else None) as kb:
        for question in (QUESTION, naming):
            told = [word for word in SECRETS if word not in question.lower()]
            answer = await kb.query(question, strategy=name, filter=WITHOUT)
            assert not ids_in(answer.trace.evidence) & hidden[asks]
            seen = [answer.context, answer.prompt, answer.text, str(answer.trace)]
            seen += [message.text for call in llm.answered for message in call.request.messages]
            assert [word for word in told if any(word in text.lower() for text in seen)] == []


# What a strategy searches decides whether it finds the same as in an index that holds only what the filter allows.
# Words and vectors of passages and sentences are of one document: these find the same, to the score.
OF_PASSAGES = ("bypass", "naive", "linear")
# Vectors of entities and relations are of all that is said of them, in any document: these find the same where no
# document that is left out tells of the same things.
OF_THINGS = ("local", "global", "hybrid", "mix", "hippo", "path", "ppr")
# The weight of a word is that in the whole collection: these find the same in another order.
OF_WORDS = ("lexical", "weave", "context")
# Groups of entities are those of the whole collection: these may find other things, though none that is left out.
OF_GROUPS = ("community_global", "community_local", "drift", "bridge", "lca")

Found = list[dict[str, list[tuple[str, float]]]]


async def found_in_both(
    folder: Path, shown: Sequence[SourceDocument], hidden: Sequence[SourceDocument]
) -> tuple[dict[str, Found], dict[str, Found]]:
    """Return by strategy what is found under a filter that hides some documents, and in an index without them."""
    without = Filter(exclude=tuple(source.id for source in hidden))
    async with engine(folder / "all") as kb, engine(folder / "few") as other:
        await build(kb, [*shown, *hidden])
        await build(other, shown)
        return await found_by_all(kb, filter=without), await found_by_all(other)


async def found_by_all(kb: Quipu, **options: Any) -> dict[str, Found]:
    """Return by strategy what is found for each question: ids and scores by section."""
    questions = (*list(RUSSIAN.questions)[:2], "Who travelled with Marco Polo to the court of Kublai Khan?")
    found: dict[str, Found] = {name: [] for name in STRATEGIES}
    for name in STRATEGIES:
        for question in questions:
            evidence = await kb.retrieve(question, strategy=name, chunk_top_k=100, **options)
            found[name].append({k: [(hit.id, hit.score) for hit in hits] for k, hits in sections(evidence).items()})
    return found


def test_every_strategy_is_of_one_kind() -> None:
    assert sorted((*OF_PASSAGES, *OF_THINGS, *OF_WORDS, *OF_GROUPS)) == sorted(STRATEGIES)


async def test_what_shares_no_name_with_the_rest_leaves_no_trace_when_it_is_left_out(tmp_path: Path) -> None:
    one, other = await found_in_both(tmp_path, RUSSIAN.documents(), CHINESE.documents())
    for name in (*OF_PASSAGES, *OF_THINGS):
        assert one[name] == other[name], name
    for name in OF_WORDS:
        assert ids(one[name]) == ids(other[name]), name
    for each in (*one["community_local"], *other["community_local"]):
        del each["reports"]
    assert one["community_local"] == other["community_local"]


async def test_what_searches_passages_finds_the_same_whatever_is_left_out(tmp_path: Path) -> None:
    documents = [story(name, number) for number, name in enumerate(NAMES)]
    one, other = await found_in_both(tmp_path, documents[::2], documents[1::2])
    for name in OF_PASSAGES:
        assert one[name] == other[name], name
    for name in OF_WORDS:
        assert ids(one[name]) == ids(other[name]), name


def ids(found: Found) -> list[set[str]]:
    """Return which passages were found for each question."""
    return [{identifier for identifier, _ in each["chunks"]} for each in found]


async def test_the_test_of_filters_sees_what_is_shown_without_one(folder: Path, hidden: dict[bool, set[str]]) -> None:
    async with opened(folder / "False", None) as kb:
        for name in STRATEGIES:
            answer = await kb.query(f"Who is {SECRETS[1].capitalize()} Polo?", strategy=name)
            seen = f"{answer.context} {answer.trace}".lower()
            assert name == "bypass" or any(word in seen for word in SECRETS[2:]), name
            assert name in ("bypass", "community_global") or ids_in(answer.trace.evidence) & hidden[False], name
