"""Comparing strategies on questions: figures, failures, budgets, and the file that continues a run."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import quipu
from quipu.bench.datasets import GoldQuestion, own_questions
from quipu.bench.strategies import Plan, ReplyFile, compare, estimate_prompt_tokens, measurement_key
from quipu.errors import InvalidInput, OverBudget
from quipu.model.answer import Answer
from quipu.model.event import Event, Progress

TEXT_BY_ID = {
    "polo.md": "Marco Polo was born in Venice in the year 1254. Marco Polo met Kublai Khan in Shangdu.",
    "khan.md": "Kublai Khan founded the Yuan dynasty in 1271. The capital of Kublai Khan was Dadu.",
    "clay.md": "Bricks are made of clay and burnt in a kiln for three days.",
}
BORN = GoldQuestion(id="a", text="Where was Marco Polo born?", answers=("Venice",), gold=(frozenset({"polo.md"}),))
MOONS = GoldQuestion(id="b", text="Which moons did Galileo see?", answers=(), gold=(), is_answerable=False)
CLAY = GoldQuestion(id="c", text="How long are bricks burnt in a kiln?", answers=("three days",), gold=())


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[quipu.Quipu]:
    async with quipu.open(tmp_path / "kb") as engine:
        for id_, text in TEXT_BY_ID.items():
            await engine.add_text(text, id=id_, title=id_)
        yield engine


def _plan(*strategies: str, metric: str = "R@5", with_answers: bool = True) -> Plan:
    return Plan(questions=(BORN, MOONS, CLAY), strategies=strategies, metric=metric, with_answers=with_answers)


async def test_each_figure_is_of_the_questions_that_it_applies_to(kb: quipu.Quipu) -> None:
    compared = await compare(kb, _plan("lexical", "naive", metric="shown"))
    assert [score.strategy for score in compared.scores] == ["lexical", "naive"]
    shares = compared.scores[0].shares
    n_by_name = {"R@5": 1, "MRR": 1, "shown": 2, "F1": 2, "in context": 2, "answered": 2, "refused": 1}
    assert {name: shares[name].n for name in n_by_name} == n_by_name
    assert shares["R@5"].value == shares["shown"].value == shares["refused"].value == 100.0
    assert shares["citations hold"].value == 100.0
    assert compared.scores[0].costs["calls"] == 0.0 and compared.scores[0].costs["tokens"] > 0
    assert compared.best is not None and compared.best.name == "lexical" and compared.as_good == ("naive",)
    assert (compared.n_asked, compared.n_questions, compared.failed, compared.stopped) == (3, 3, (), "")
    curve = compared.scores[0].refusals
    assert curve is not None and curve.separation == 100.0
    assert [(point.unanswerable, point.answerable) for point in curve.points if point.needed == 1] == [(100, 0)]


async def test_without_answers_only_rankings_and_contexts_are_scored(kb: quipu.Quipu) -> None:
    [score] = (await compare(kb, _plan("lexical", with_answers=False))).scores
    assert {"R@5", "in context"} <= score.shares.keys()
    assert score.shares.keys().isdisjoint({"shown", "answered", "refused"})
    assert score.refusals is None


async def test_a_strategy_that_cannot_run_is_left_out_and_says_why(kb: quipu.Quipu) -> None:
    compared = await compare(kb, _plan("community_global", "lexical"))
    assert [score.strategy for score in compared.scores] == ["lexical"]
    [(name, error)] = compared.failed
    assert name == "community_global" and "quipu refresh" in error


async def test_no_strategy_is_chosen_by_a_figure_that_no_question_has(kb: quipu.Quipu) -> None:
    plan = Plan(questions=(CLAY,), strategies=("lexical",), metric="R@5", with_answers=False)
    assert (await compare(kb, plan)).best is None


async def test_progress_names_each_question(kb: quipu.Quipu) -> None:
    events: list[Event] = []
    await compare(kb, _plan("lexical"), None, events.append)
    assert [event.detail for event in events if isinstance(event, Progress)] == [BORN.text, MOONS.text, CLAY.text]


class _Counting:
    """An engine whose questions are counted; the one after `limit` exceeds the budget."""

    def __init__(self, kb: quipu.Quipu, limit: int) -> None:
        self._kb = kb
        self._limit = limit
        self.n_asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._kb, name)

    async def query(self, text: str, **options: object) -> Answer:
        if self.n_asked == self._limit:
            raise OverBudget("The budget of 3 calls is spent.", remedy="Raise it.")
        self.n_asked += 1
        return await self._kb.query(text, **options)  # type: ignore[arg-type]


async def test_a_run_that_a_budget_ended_scores_whole_questions_and_is_continued(
    kb: quipu.Quipu, tmp_path: Path
) -> None:
    plan = _plan("lexical", "naive", metric="shown")
    replies = ReplyFile(tmp_path / "run.jsonl", await measurement_key(kb, plan))
    first = _Counting(kb, 3)
    stopped = await compare(first, plan, replies)  # type: ignore[arg-type]
    assert (stopped.n_asked, stopped.n_questions) == (1, 3) and "Raise it." in stopped.stopped
    assert stopped.scores[0].shares["R@5"].n == 1
    with (tmp_path / "run.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"question": "c", "str')  # a line that was cut off
    second = _Counting(kb, 99)
    finished = await compare(second, plan, replies)  # type: ignore[arg-type]
    assert second.n_asked == 2 * 3 - 3
    assert (finished.n_asked, finished.stopped) == (3, "")
    third = _Counting(kb, 0)
    assert await compare(third, plan, replies) == finished  # type: ignore[arg-type]


async def test_a_file_of_another_measurement_is_refused(kb: quipu.Quipu, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    ReplyFile(file, await measurement_key(kb, _plan("lexical"))).read()
    before = file.read_bytes()
    await kb.add_text("Another text about Venice.", id="new.md")
    with pytest.raises(InvalidInput, match="another state of the index"):
        ReplyFile(file, await measurement_key(kb, _plan("lexical"))).read()
    assert file.read_bytes() == before
    file.write_text(before.decode() + '{"question": 1}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"run\.jsonl, line 2"):
        ReplyFile(file, json.loads(before)["quipu_bench"]).read()


async def test_the_estimate_counts_the_prompts_of_every_question_and_strategy(kb: quipu.Quipu) -> None:
    one = await estimate_prompt_tokens(kb, _plan("lexical"))
    both = await estimate_prompt_tokens(kb, _plan("lexical", "naive"))
    assert both > one > 0
    assert await estimate_prompt_tokens(kb, _plan("community_global")) == 0


async def test_own_questions_have_a_name_as_answer_and_its_passages_as_gold(kb: quipu.Quipu) -> None:
    questions = await own_questions(kb, 10, 1)
    assert questions == await own_questions(kb, 10, 1)
    assert questions
    for question in questions:
        chunk_ids = [id_ for group in question.gold for id_ in group]
        assert len(chunk_ids) == (2 if question.id.startswith("two-") else 1)
        answer_chunk = (await kb.chunk(chunk_ids[-1])).chunk
        assert question.answers[0] in answer_chunk.text
        assert question.answers[0] not in question.text
    assert any(question.id.startswith("two-") for question in questions)
    assert len(await own_questions(kb, 1, 1)) == 1


async def test_documents_without_names_give_no_questions(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "empty") as engine:
        await engine.add_text("it is cold here and the wind blows all day long.", id="a")
        assert await own_questions(engine, 10, 1) == ()
