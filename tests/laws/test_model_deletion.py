"""Law 6: taking documents out asks a model only about what that changed, and nothing where the change is known."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import pytest

from quipu.algo.batches import Batch
from quipu.derive import summaries
from quipu.engine import Quipu
from quipu.model.document import SourceDocument
from quipu.model.graph import MAX_DESCRIPTIONS
from quipu.stores.relational.store import RelationalStore
from quipu.testing.llm import AnsweredCall, ScriptedLLM
from quipu.testing.scripted.prompt_parsing import parse_prompt
from quipu.testing.scripted.script import RequestKind
from tests.laws.model_world import dump_of, script, scripted_engine

N_DOCUMENTS = 120
DOCUMENTS_A_NAME = 12
N_NOTES = 60


def note(number: int, names: Sequence[str]) -> SourceDocument:
    """Return a document of one sentence about two names."""
    text = f"In the year {number} did {names[0]} say that {names[1]} waited for letter {number * 7919 % 1000}."
    return SourceDocument(id=f"{number}.md", content=text.encode(), media_type="text/markdown", title="Letter")


def letters(n: int) -> list[SourceDocument]:
    """Return documents about so many names that each is in about a dozen of them."""
    random = Random("letters")
    names = [f"Person{number} Smith" for number in range(max(4, 2 * n // DOCUMENTS_A_NAME))]
    return [note(number, random.sample(names, 2)) for number in range(n)]


def hub(n: int) -> list[SourceDocument]:
    """Return documents that all say something else about one name."""
    return [note(number, ("Marco Polo", f"Person{number} Smith")) for number in range(n)]


async def described(kb: Quipu) -> dict[str, frozenset[str]]:
    """Return what is said of each entity and relation, by the names of its summary's subjects."""
    said: dict[str, set[str]] = {}
    async for line in kb.dump():
        record = json.loads(line)
        if record["kind"] == "entity_mention":
            said.setdefault(record["entity"], set()).add(record["description"])
        elif record["kind"] == "relation_mention":
            ends = " | ".join(sorted((record["source"], record["target"])))
            said.setdefault(ends, set()).add(record["description"])
    return {subject: frozenset(each) for subject, each in said.items()}


def subjects(calls: Iterable[AnsweredCall]) -> set[str]:
    """Return what the summaries are about that these calls asked for."""
    texts = (parse_prompt(call.request.messages).text for call in calls)
    return {text.partition("\n")[0].removeprefix("Subjects: ") for text in texts}


def is_leaf(call: AnsweredCall) -> bool:
    """Say whether a call sums up descriptions, and not summaries of some."""
    return "(Summary " not in parse_prompt(call.request.messages).text


class Counter:
    """Says which calls a model has answered since it was asked last."""

    def __init__(self, llm: ScriptedLLM) -> None:
        self._llm = llm
        self._n_seen = 0

    def new(self) -> list[AnsweredCall]:
        """Return the calls since the last time."""
        found = self._llm.answered[self._n_seen :]
        self._n_seen += len(found)
        return found


async def test_removing_a_tenth_asks_only_for_summaries_whose_inputs_changed(laws_scale: int, tmp_path: Path) -> None:
    documents = letters(min(1_000, N_DOCUMENTS * laws_scale))
    removed = Random("removed").sample([each.id for each in documents], len(documents) // 10)
    llm = ScriptedLLM(script())
    async with scripted_engine(tmp_path / "kb", llm) as kb:
        await kb.add(*documents)
        before, calls = await described(kb), Counter(llm)
        calls.new()
        await kb.remove(removed)
        asked, after = calls.new(), await described(kb)
        changed = {each for each in after if after[each] != before[each] and len(after[each]) > MAX_DESCRIPTIONS}
        assert changed and {call.kind for call in asked} == {RequestKind.SUMMARISE}
        assert subjects(asked) == changed
        assert len({call.request for call in asked}) == len(asked)
        ended = await dump_of(kb)
    async with scripted_engine(tmp_path / "fresh", ScriptedLLM(script())) as kb:
        await kb.add(*(each for each in documents if each.id not in removed))
        assert await dump_of(kb) == ended


async def calls_for_each_removal(folder: Path, n_removed: int) -> tuple[list[list[AnsweredCall]], int]:
    """Remove documents about one name one by one; return the calls of each, and how many the whole summary took."""
    documents, llm = hub(N_NOTES), ScriptedLLM(script())
    async with scripted_engine(folder, llm) as kb:
        await kb.add(*documents)
        calls = Counter(llm)
        whole = [call for call in calls.new() if call.kind is RequestKind.SUMMARISE]
        found: list[list[AnsweredCall]] = []
        for document in Random("hub").sample(documents, n_removed):
            await kb.remove([document.id])
            found.append(calls.new())
        return found, len(whole)


async def asks_much(folder: Path) -> bool:
    """Say whether removing one description asks for more than its batch and the path above it, mostly."""
    removals, n_whole = await calls_for_each_removal(folder, 9)
    assert n_whole > 10
    n_leaves = [sum(map(is_leaf, calls)) for calls in removals]
    n_above = [len(calls) - n for calls, n in zip(removals, n_leaves, strict=True)]
    depth = n_whole.bit_length()  # of a tree of batches of two or more
    return sorted(n_leaves)[len(n_leaves) // 2] > 1 or max(n_leaves) > 3 or max(n_above) > depth


async def test_one_description_less_asks_for_its_batch_and_the_path_above_it(tmp_path: Path) -> None:
    assert not await asks_much(tmp_path / "kb")


async def test_the_law_fails_where_batches_are_counted_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted_off(weights: Sequence[int], _marks: Sequence[int], **_: int) -> Batch:
        leaves = tuple(Batch(start, min(start + 3, len(weights))) for start in range(0, len(weights), 3))
        return Batch(0, len(weights), leaves)

    monkeypatch.setattr(summaries, "batch_tree", counted_off)
    assert await asks_much(tmp_path / "kb")


async def n_calls_to_take_back(folder: Path) -> int:
    """Add a document to others and remove it again; return how many calls that removal took."""
    *documents, last = hub(20)
    llm = ScriptedLLM(script())
    async with scripted_engine(folder, llm) as kb:
        await kb.add(*documents)
        before, calls = await dump_of(kb), Counter(llm)
        await kb.add(last)
        assert RequestKind.SUMMARISE in {call.kind for call in calls.new()}
        await kb.remove([last.id])
        assert await dump_of(kb) == before
        return len(calls.new())


async def test_what_was_summed_up_before_costs_nothing_again(tmp_path: Path) -> None:
    assert await n_calls_to_take_back(tmp_path / "kb") == 0


async def test_the_law_fails_where_replies_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def find(_store: RelationalStore, _input_hashes: Sequence[str]) -> dict[str, str]:
        return {}

    monkeypatch.setattr(RelationalStore, "find_replies", find)
    assert await n_calls_to_take_back(tmp_path / "kb") > 0


async def test_a_document_that_comes_back_is_read_again_and_asks_for_its_own_batches_only(tmp_path: Path) -> None:
    """What was made from a removed document is gone with it, so that it is paid for again; all the rest is known."""
    documents, llm = hub(N_NOTES), ScriptedLLM(script())
    async with scripted_engine(tmp_path / "kb", llm) as kb:
        await kb.add(*documents)
        before, calls = await dump_of(kb), Counter(llm)
        calls.new()
        await kb.remove([documents[7].id])
        n_removing = len(calls.new())
        await kb.add(documents[7])
        asked = calls.new()
        assert await dump_of(kb) == before
    summed_up = [call for call in asked if call.kind is RequestKind.SUMMARISE]
    assert len(asked) - len(summed_up) == 2  # reading the one chunk, and what was missed in it
    assert 0 < len(summed_up) <= n_removing + 1
