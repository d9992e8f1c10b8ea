"""The judge: its measures by cases worked by hand, replies that it reads or refuses, and recorded verdicts."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import quipu
from quipu.bench.datasets import GoldQuestion
from quipu.bench.judge import (
    Judge,
    Judgement,
    context_precision,
    estimate_judgements,
    read_grades,
    read_pair,
    read_question,
    read_questions,
    read_statements,
    read_useful,
    win_shares,
    written_questions,
)
from quipu.bench.strategies import Plan, compare
from quipu.errors import InvalidInput
from quipu.model.chat import ChatRequest, Role
from quipu.prompts.judge import CRITERIA, PAIR, render
from quipu.settings.tables import RoleSettings
from quipu.testing.scripted.script import CannedReply, ReplyRules, RequestKind, Script
from quipu.testing.server import ServerHandle

VERDICTS = Path(__file__).resolve().parents[3] / "../shared/data/hirag_mix61/judge_gpt4o.jsonl"
BORN = GoldQuestion(id="a", text="Where was Marco Polo born?", answers=("Venice",), gold=())
MOONS = GoldQuestion(id="b", text="Which moons did Galileo see?", answers=(), gold=(), is_answerable=False)
SECOND_BETTER = json.dumps(dict.fromkeys(CRITERIA, 2))


def test_context_precision_is_the_mean_precision_at_useful_ranks() -> None:
    assert context_precision([1, 3], 4) == pytest.approx((1 + 2 / 3) / 2)
    assert context_precision([4], 4) == 0.25
    assert context_precision([], 4) == context_precision([9, 0], 4) == 0.0
    assert context_precision([2, 2, 1], 3) == 1.0


def test_a_tie_is_half_a_win() -> None:
    verdicts = [dict.fromkeys(CRITERIA, winner) for winner in (1, 1, 2, 0)]
    assert win_shares(verdicts) == dict.fromkeys(CRITERIA, 0.625)
    assert win_shares([]) == {}


@pytest.mark.parametrize(
    ("reply", "verdicts"),
    [
        (
            '{"statements": [{"statement": "a", "supported": true}, {"statement": "b", "supported": false}]}',
            [True, False],
        ),
        ('```json\n{"statements": [{"statement": "a", "supported": "Yes"}, {"supported": 0}]}\n```', [True, False]),
        ('{"statements": []}', []),
        ('{"statements": "none"}', None),
        ("I cannot judge this.", None),
        ('{"statements": [7, {"statement": "a"}]}', []),
    ],
)
def test_statements_are_read_or_refused(reply: str, verdicts: list[bool] | None) -> None:
    assert read_statements(reply) == verdicts


def test_questions_of_an_evasive_answer_are_none() -> None:
    assert read_questions('{"questions": ["Who?", " ", 3, "When?"], "evasive": false}') == ["Who?", "When?"]
    assert read_questions('{"questions": ["Who?"], "evasive": true}') == []
    assert read_questions('{"questions": []}') is read_questions("none") is None


def test_useful_passages_are_only_those_shown() -> None:
    assert read_useful('{"useful": [1, 5, "2", 3]}', 4) == [1, 3]
    assert read_useful('{"useful": 1}', 4) is None


@pytest.mark.parametrize("bad", ["{}", SECOND_BETTER.replace("2", "3"), SECOND_BETTER.replace("2", '"2"'), "2"])
def test_a_verdict_without_every_criterion_is_refused(bad: str) -> None:
    assert read_pair(bad) is None


def test_grades_are_shares_of_the_best() -> None:
    assert read_grades(json.dumps(dict.fromkeys(CRITERIA, 7))) == dict.fromkeys(CRITERIA, 0.7)
    assert read_grades(json.dumps(dict.fromkeys(CRITERIA, 11))) is None


@pytest.mark.skipif(not VERDICTS.exists(), reason="needs the recorded verdicts of hirag_mix61")
def test_recorded_verdicts_are_read_and_counted_as_published() -> None:
    """HiRAG (H. Huang et al. 2025) publishes these shares of its wins over naive RAG on the set Mix."""
    verdicts = []
    for line in VERDICTS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["pair"] == "hirag vs naive":
            names = ("Comprehensiveness", "Diversity", "Empowerment", "Overall Winner")
            is_first = row["order"] == "hirag_first"
            shown = {c: 1 if (row[n] == "hirag") is is_first else 2 for c, n in zip(CRITERIA, names, strict=True)}
            verdict = read_pair(f"The verdict:\n```json\n{json.dumps(shown)}\n```")
            assert verdict is not None
            verdicts.append({c: winner if is_first else 3 - winner for c, winner in verdict.items()})
    shares = [round(100 * share, 1) for share in win_shares(verdicts).values()]
    assert (len(verdicts), shares) == (259, [83.4, 87.3, 88.4, 87.6])


@pytest.fixture
async def kb(tmp_path: Path, server: ServerHandle) -> AsyncIterator[quipu.Quipu]:
    server.reset()
    server.configure(Script())
    role = RoleSettings(role=Role.JUDGE, llm="custom/judge", llm_base_url=server.base_url)
    async with quipu.open(tmp_path / "kb", role=(role,)) as engine:  # type: ignore[arg-type]
        await engine.add_text("Marco Polo was born in Venice in the year 1254.", id="polo.md", title="polo.md")
        await engine.add_text("Kublai Khan founded the Yuan dynasty in 1271.", id="khan.md", title="khan.md")
        yield engine


def _replying(server: ServerHandle, reply: Mapping[str, object]) -> None:
    canned = CannedReply(text=json.dumps(reply), kinds=(RequestKind.JUDGE,))
    server.configure(Script(answering=ReplyRules(replies=(canned,))))


async def test_the_measures_of_ragas_come_from_four_calls(kb: quipu.Quipu, server: ServerHandle) -> None:
    statements = [{"statement": "a", "supported": True}, {"statement": "b", "supported": False}]
    _replying(server, {"statements": statements, "questions": [BORN.text] * 3, "useful": [1]})
    answer = await kb.query(BORN.text, strategy="naive")
    figures = await Judge(kb=kb, kinds=[Judgement.RAGAS]).figures(BORN, answer, None)
    assert figures["faithful"] == figures["context recall"] == 0.5
    assert figures["relevant"] == pytest.approx(1.0, abs=1e-5)
    assert figures["context precision"] == 1.0
    assert server.settled().total(RequestKind.JUDGE).n_completed == 4


async def test_an_answer_that_wins_by_its_place_alone_wins_half(kb: quipu.Quipu, server: ServerHandle) -> None:
    _replying(server, dict.fromkeys(CRITERIA, 1))
    answer = await kb.query(BORN.text, strategy="naive")
    rival = replace(answer, text="In Venice.")
    figures = await Judge(kb=kb, kinds=[Judgement.PAIRS]).figures(BORN, answer, rival)
    assert figures == {f"{name} wins": 0.5 for name in CRITERIA}


async def test_a_reply_that_cannot_be_read_is_asked_for_once_more(kb: quipu.Quipu, server: ServerHandle) -> None:
    _replying(server, {"score": 1})
    answer = await kb.query(BORN.text, strategy="naive")
    assert await Judge(kb=kb, kinds=[Judgement.GRADES]).figures(BORN, answer, None) == {}
    assert server.settled().total(RequestKind.JUDGE).n_completed == 2


async def test_strategies_are_judged_beside_the_first_one(kb: quipu.Quipu, server: ServerHandle) -> None:
    plan = Plan(
        questions=(BORN, MOONS),
        strategies=("naive", "lexical"),
        metric="shown",
        with_answers=True,
        judgements=tuple(Judgement),
    )
    first, second = (await compare(kb, plan)).scores
    assert {"faithful", "relevant", "context precision", "context recall", "overall grade"} <= first.shares.keys()
    assert "overall wins" not in first.shares and second.shares["overall wins"].n == 1
    n_calls, *_ = estimate_judgements(plan.judgements, 2, 1, 1_000)
    assert server.settled().total(RequestKind.JUDGE).n_completed <= n_calls == 12


DRAFT = GoldQuestion(id="one", text="Polo born year", answers=("Venice",), gold=())


async def _drafts(kb: quipu.Quipu) -> list[GoldQuestion]:
    chunk = (await kb.document("polo.md")).chunks[0]
    return [replace(DRAFT, gold=(frozenset({chunk.id}),))]


async def test_a_question_is_written_about_the_passages_of_its_draft(kb: quipu.Quipu, server: ServerHandle) -> None:
    _replying(server, {"question": "In which year was Marco Polo born?", "answer": "The  year 1254"})
    drafts = await _drafts(kb)
    assert await written_questions(kb, drafts) == (
        replace(drafts[0], text="In which year was Marco Polo born?", answers=("The year 1254",)),
    )


async def test_a_question_whose_answer_its_passage_lacks_is_not_asked(kb: quipu.Quipu, server: ServerHandle) -> None:
    _replying(server, {"question": "When did Marco Polo die?", "answer": "1324"})
    with pytest.raises(InvalidInput, match="wrote no question") as caught:
        await written_questions(kb, await _drafts(kb))
    assert "--no-model" in caught.value.remedy
    assert server.settled().total(RequestKind.JUDGE).n_completed == 2


@pytest.mark.parametrize(
    "reply", ["nothing", "[]", '{"question": "", "answer": ""}', '{"question": 3, "answer": "a"}', '{"question": "Q?"}']
)
def test_a_reply_without_question_and_answer_is_none(reply: str) -> None:
    assert read_question(reply, ["a passage"]) is None


async def test_without_a_model_for_the_role_the_remedy_names_it(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "kb") as engine:
        request = ChatRequest(messages=render(PAIR, [], []), role=Role.JUDGE, max_output_tokens=10)
        with pytest.raises(InvalidInput, match=r"\[role\.judge\]"):
            await engine.complete(request)
