"""Conversations in Python: follow-up questions, what an answer rests on, limits, and what cannot be saved."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.engine.conversations import ANSWER_GONE, MAX_TITLE_LENGTH, one_line, recent_exchanges, title_of, turns_of
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.model.conversation import SavedAnswer, SavedExchange
from quipu.model.document import SourceDocument
from quipu.ports.conversations import ConversationLimits
from quipu.providers.local import ByteTokenizer
from quipu.testing.llm import ScriptedLLM
from quipu.testing.scripted.script import CannedReply, ReplyRules, RequestKind, Script
from tests.laws.model_world import scripted_engine
from tests.laws.world import engine

_REWRITTEN = "Whom did Ada Lovelace teach?"
_REPLY = CannedReply(text=f'{{"question": "{_REWRITTEN}"}}', kinds=(RequestKind.REWRITE,))
_SCRIPT = Script(answering=ReplyRules(replies=(_REPLY,)))
LETTERS = (
    SourceDocument(id="a.md", content=b"Ada Lovelace wrote to Charles Babbage about the engine in 1843."),
    SourceDocument(id="b.md", content=b"Mary Somerville taught Ada Lovelace mathematics in London."),
    SourceDocument(id="c.md", content=b"Marco Polo met Kublai Khan at the court of Shangdu in 1275."),
)


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    """Return an engine without a model."""
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*LETTERS)
        yield kb


@pytest.fixture
def llm() -> ScriptedLLM:
    """Return the model of `model_kb`."""
    return ScriptedLLM(_SCRIPT)


@pytest.fixture
async def model_kb(tmp_path: Path, llm: ScriptedLLM) -> AsyncIterator[Quipu]:
    """Return an engine whose answers a model writes."""
    async with scripted_engine(tmp_path / "kb", llm) as kb:
        await kb.add(*LETTERS)
        yield kb


async def test_an_answer_is_saved_as_it_was_given(kb: Quipu) -> None:
    given = await kb.conversations.ask("Whom did Ada Lovelace write to?", strategy="mix")
    (exchange,) = (await kb.conversations.read(given.conversation)).exchanges
    assert exchange.answer is not None
    assert (exchange.number, exchange.question) == (1, "Whom did Ada Lovelace write to?")
    assert (exchange.answer.text, exchange.answer.citations) == (given.answer.text, given.answer.citations)
    assert (exchange.answer.strategy, exchange.answer.highlights) == ("mix", given.answer.highlights)
    assert exchange.answer.citation_marks == given.answer.citation_marks != ()
    citation = exchange.answer.citations[0]
    assert (await kb.text(citation.document_id))[citation.start : citation.end] == citation.quote


async def test_a_follow_up_question_is_rewritten_from_the_conversation(model_kb: Quipu, llm: ScriptedLLM) -> None:
    first = await model_kb.conversations.ask("Whom did Ada Lovelace write to?")
    second = await model_kb.conversations.ask("And whom did she teach?", first.conversation)
    assert second.number == 2
    assert f"searched for: {_REWRITTEN}" in second.answer.trace.evidence.notes
    rewriting = [call.request for call in llm.answered if call.kind is RequestKind.REWRITE]
    sent = rewriting[0].messages[-1].text
    assert "Whom did Ada Lovelace write to?" in sent
    assert first.answer.text[:200] in sent


async def test_an_answer_goes_with_any_document_whose_words_the_model_saw(model_kb: Quipu) -> None:
    talks = model_kb.conversations
    ada = await talks.ask("Who is Ada Lovelace?", strategy="mix")
    await talks.ask("Who is Ada Lovelace?", ada.conversation, strategy="bypass")
    marco = await talks.ask("Whom did Marco Polo meet?", strategy="lexical")
    await model_kb.remove(["b.md"])
    exchanges = (await talks.read(ada.conversation)).exchanges
    assert [exchange.answer for exchange in exchanges] == [None, None]  # the second one saw the first as its history
    assert (await talks.read(marco.conversation)).exchanges[0].answer is not None


async def test_what_a_model_may_repeat_is_in_every_document_that_mentions_an_entity_of_the_prompt(
    model_kb: Quipu,
) -> None:
    stream = model_kb.conversations.stream("Whom did Ada Lovelace write to?", strategy="mix", chunk_top_k=1)
    async with aclosing(stream) as pieces:
        documents = [piece.documents async for piece in pieces if piece.stage == "generate"]
    assert documents == [("a.md", "b.md")]


async def test_an_answer_without_a_model_goes_only_with_what_it_quotes(kb: Quipu) -> None:
    given = await kb.conversations.ask("Whom did Ada Lovelace write to?", strategy="naive", min_similarity=-1.0)
    assert len(given.answer.trace.evidence.chunks) == len(LETTERS)
    assert {citation.document_id for citation in given.answer.citations} <= {"a.md", "b.md"}
    await kb.remove(["c.md"])
    assert (await kb.conversations.read(given.conversation)).exchanges[0].answer is not None
    await kb.add(SourceDocument(id="a.md", content=b"Nothing is said here any more."))
    assert (await kb.conversations.read(given.conversation)).exchanges[0].answer is None


async def test_an_answer_that_a_removal_overtakes_is_given_but_not_saved(kb: Quipu) -> None:
    talks = kb.conversations
    async with aclosing(talks.stream("Whom did Ada Lovelace write to?")) as pieces:
        async for piece in pieces:
            if piece.stage == "generate":  # the evidence was read
                await kb.remove(["a.md"])
    assert piece.answer is not None
    assert "Charles Babbage" in piece.answer.text
    assert piece.answer.notes[-1] == ANSWER_GONE
    details = await talks.read(piece.conversation)
    assert [(exchange.question, exchange.answer) for exchange in details.exchanges] == [
        ("Whom did Ada Lovelace write to?", None)
    ]


async def test_a_question_whose_answer_never_came_is_not_saved(kb: Quipu) -> None:
    async with aclosing(kb.conversations.stream("Whom did Ada Lovelace write to?")) as pieces:
        async for piece in pieces:
            if piece.stage == "retrieve":
                break
    assert (await kb.conversations.page()).conversations == ()


async def test_conversations_belong_to_their_owner(kb: Quipu) -> None:
    ada, bob, admin = (kb.conversations.of(name, sees_all=name == "admin") for name in ("ada", "bob", "admin"))
    given = await ada.ask("Whom did Ada Lovelace write to?")
    assert [row.id for row in (await ada.page()).conversations] == [given.conversation]
    assert (await bob.page()).conversations == (await admin.page()).conversations == ()
    for call in (bob.read, bob.delete, lambda id_: bob.rename(id_, "x"), lambda id_: bob.ask("x", id_)):
        with pytest.raises(NotFound, match="no conversation"):
            await call(given.conversation)
    with pytest.raises(InvalidInput):
        await bob.page(of_all_owners=True)
    assert [row.owner for row in (await admin.page(of_all_owners=True)).conversations] == ["ada"]
    assert (await admin.ask("And who is he?", given.conversation)).number == 2
    assert (await ada.read(given.conversation)).conversation.owner == "ada"


async def test_pages_have_every_conversation_once(kb: Quipu) -> None:
    ids = [(await kb.conversations.ask(f"Who is Ada, {n}?", strategy="lexical")).conversation for n in range(5)]
    listed, cursor = list[str](), "first"
    while cursor:
        page = await kb.conversations.page("" if cursor == "first" else cursor, 2)
        listed += [row.id for row in page.conversations]
        cursor = page.cursor
    assert listed == ids[::-1]


async def test_a_full_conversation_is_refused_before_anything_is_asked(kb: Quipu) -> None:
    talks = replace(kb.conversations, limits=ConversationLimits(max_exchanges=1))
    given = await talks.ask("Whom did Ada Lovelace write to?")
    with pytest.raises(InvalidInput, match="has 1 questions") as raised:
        async for _ in talks.stream("And who is he?", given.conversation):
            pytest.fail("the question was asked")
    assert "new conversation" in raised.value.remedy


async def test_what_cannot_be_saved_is_answered_with_a_note(kb: Quipu) -> None:
    talks = replace(kb.conversations, limits=ConversationLimits(max_answer_bytes=10))
    given = await talks.ask("Whom did Ada Lovelace write to?")
    assert "Charles Babbage" in given.answer.text
    assert (given.conversation, given.number) == ("", 0)
    assert "a conversation keeps at most 10" in given.answer.notes[-1]


async def test_the_history_is_not_for_the_caller_to_give(kb: Quipu) -> None:
    with pytest.raises(InvalidInput, match="history"):
        await kb.conversations.ask("Who?", history=())


async def test_a_store_without_conversations_says_so(kb: Quipu) -> None:
    talks = replace(kb.conversations, components=replace(kb._components, conversations=None))
    with pytest.raises(Unavailable, match="no conversations"):
        await talks.page()


async def test_a_conversation_is_renamed(kb: Quipu) -> None:
    given = await kb.conversations.ask("Whom did Ada Lovelace write to?")
    renamed = await kb.conversations.rename(given.conversation, "  Letters\n\u202eof\0 1843 ")
    assert renamed.title == "Letters of 1843"
    assert (await kb.conversations.page()).conversations == (renamed,)
    for title in ("", " \n\0", "x" * 201):
        with pytest.raises(InvalidInput, match="A title has"):
            await kb.conversations.rename(given.conversation, title)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Who?", "Who?"),
        ("Who\nwrote\t it?\0\u202e", "Who wrote it?"),
        ("word " * 40, ("word " * 15).strip() + "…"),
        ("长" * 100, "长" * (MAX_TITLE_LENGTH - 1) + "…"),
    ],
)
def test_a_title_is_the_beginning_of_the_question_on_one_line(question: str, title: str) -> None:
    assert title_of(question) == title
    assert len(title) <= MAX_TITLE_LENGTH
    assert one_line(title) == title


def test_the_history_is_what_was_said_last_as_far_as_there_is_room() -> None:
    answer = SavedAnswer(text="x" * 40, generator="", strategy="", is_supported=True)
    exchanges = [
        SavedExchange(number=n, question=f"question {n}", asked_at="", answer=None if n == 2 else answer)
        for n in range(1, 4)
    ]
    tokenizer = ByteTokenizer()
    recent = recent_exchanges(exchanges, 1_000, tokenizer)
    assert [exchange.number for exchange in recent] == [1, 2, 3]
    assert [turn.role for turn in turns_of(recent)] == ["user", "assistant", "user", "user", "assistant"]
    assert [exchange.number for exchange in recent_exchanges(exchanges, 20, tokenizer)] == [2, 3]
    assert recent_exchanges(exchanges, 5, tokenizer) == []


async def test_a_question_sees_the_last_three_exchanges(model_kb: Quipu, llm: ScriptedLLM) -> None:
    talk = ""
    for n in range(5):
        talk = (await model_kb.conversations.ask(f"Who is Ada Lovelace, number {n}?", talk)).conversation
    sent = [call.request for call in llm.answered if call.kind is RequestKind.REWRITE][-1].messages[-1].text
    assert [n for n in range(5) if f"number {n}?" in sent] == [1, 2, 3, 4]
