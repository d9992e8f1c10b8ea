"""Saved conversations: kept in order, and without the text of documents that are removed or replaced."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from quipu.errors import InvalidInput, NotFound
from quipu.model.answer import Citation
from quipu.model.conversation import ConversationDetails, SavedAnswer
from quipu.model.query import Filter
from quipu.ports.conversations import ConversationLimits, ConversationStore, NewExchange
from quipu.ports.store import Store
from quipu.testing.contract import run_as_coroutines
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import document, passage

ConversationsOf = Callable[[Store], ConversationStore]
_LIMITS = ConversationLimits()
_CITATION = Citation(number=1, document_id="a", title="A", chunk_id="c", start=3, end=7, quote="Ada.", page=2)


def _exchange(text: str = "She wrote. [1]", conversation: str = "", **others: object) -> NewExchange:
    answer = SavedAnswer(
        text=text,
        generator="extractive",
        strategy="mix",
        is_supported=True,
        citations=(_CITATION,),
        highlights=((0, 3),),
        notes=("долго 长城 😀",),
    )
    new = NewExchange(
        conversation=conversation,
        owner="ada",
        title="Who wrote?",
        question="Who wrote?",
        answer=answer,
        documents=("a",),
        revision=1_000,
    )
    return replace(new, **others)  # type: ignore[arg-type]


async def _read(store: ConversationStore, conversation: str) -> ConversationDetails:
    details = await store.conversation(conversation)
    assert details is not None
    return details


async def _answers(store: ConversationStore, conversation: str) -> Sequence[str | None]:
    details = await _read(store, conversation)
    return [exchange.answer.text if exchange.answer else None for exchange in details.exchanges]


async def _saved(store: ConversationStore, exchange: NewExchange) -> str:
    return (await store.save_exchange(exchange, _LIMITS)).conversation.id


@run_as_coroutines
class ConversationsContract:
    """Every promise of `ports/conversations.py` as a test; needs pytest and pytest-asyncio.

    A subclass named `Test…` brings `open_store`, as the store contract does, and `conversations_of`: a callable that
    returns the conversations of an open store.
    """

    async def test_an_exchange_is_read_back_as_it_was_by_another_store(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as first, open_store() as second:
            await publish(first, document("a", "Ada."))
            saved = await conversations_of(first).save_exchange(_exchange(), _LIMITS)
            await conversations_of(second).save_exchange(_exchange("Later.", saved.conversation.id), _LIMITS)
            details = await _read(conversations_of(first), saved.conversation.id)
            assert details.exchanges[0] == saved.exchanges[0]
            assert details.exchanges[0].answer == _exchange().answer
            assert [exchange.number for exchange in details.exchanges] == [1, 2]
            for n_last, numbers in ((0, []), (1, [2]), (5, [1, 2])):
                last = await conversations_of(first).conversation(saved.conversation.id, n_last)
                assert last is not None
                assert [exchange.number for exchange in last.exchanges] == numbers
                assert last.conversation == details.conversation
            assert (details.conversation.title, details.conversation.owner) == ("Who wrote?", "ada")
            assert details.conversation.n_exchanges == 2

    async def test_exchanges_that_are_saved_at_once_are_all_kept_under_numbers_of_their_own(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as first, open_store() as second:
            await publish(first, document("a", "Ada."))
            id_ = await _saved(conversations_of(first), _exchange("0"))
            await asyncio.gather(
                *(
                    conversations_of(store).save_exchange(_exchange(f"{n}", id_), _LIMITS)
                    for n, store in enumerate((first, second) * 8, 1)
                )
            )
            details = await _read(conversations_of(first), id_)
            assert [exchange.number for exchange in details.exchanges] == [*range(1, 18)]
            assert {exchange.answer.text for exchange in details.exchanges if exchange.answer} == {*map(str, range(17))}

    async def test_a_removed_or_replaced_document_takes_the_answers_with_it_but_not_the_questions(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as store, open_store() as other:
            await publish(store, document("a", "Ada."), document("b", "Bob."), document("c", "Cid."))
            talks = conversations_of(store)
            id_ = await _saved(talks, _exchange("of a"))
            for text, documents in (("of b", ("b",)), ("of a and b", ("a", "b")), ("of c", ("c",)), ("of all", None)):
                await _saved(talks, _exchange(text, id_, documents=documents))
            assert [await talks.count_answers([name]) for name in ("a", "b", "c", "none")] == [3, 3, 2, 0]
            await remove(other, "a")
            assert await _answers(talks, id_) == [None, "of b", None, "of c", None]
            await publish(other, document("b", "Bea."))
            assert await _answers(talks, id_) == [None, None, None, "of c", None]
            assert {exchange.question for exchange in (await _read(talks, id_)).exchanges} == {"Who wrote?"}
            assert await store.verify() == []

    async def test_a_document_that_stays_as_it_is_keeps_its_answers(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        failed = document("a", passage("Ada.", error="The model failed."))
        async with open_store() as store:
            await publish(store, failed)
            id_ = await _saved(conversations_of(store), _exchange())
            await publish(store, document("a", "Ada."), document("b", "Bob."))
            assert await _answers(conversations_of(store), id_) == ["She wrote. [1]"]
            await publish(store, replace(document("a", "Ada."), title="Another title"))
            assert await _answers(conversations_of(store), id_) == [None]

    async def test_a_cited_passage_that_moves_takes_the_answer_with_it(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "Ada."))
            id_ = await _saved(conversations_of(store), _exchange())
            await publish(store, document("a", "Before.", "Ada."))
            assert await _answers(conversations_of(store), id_) == [None]

    @pytest.mark.parametrize("documents", [("a",), None])
    async def test_an_answer_that_was_made_before_a_removal_is_not_saved_after_it(
        self, open_store: OpenStore, conversations_of: ConversationsOf, documents: tuple[str, ...] | None
    ) -> None:
        async with open_store() as store:
            revision = (await publish(store, document("a", "Ada."), document("b", "Bob."))).revision
            exchange = _exchange(documents=documents, revision=revision)
            await publish(store, document("c", "Cid."))
            assert await _answers(conversations_of(store), await _saved(conversations_of(store), exchange)) != [None]
            await publish(store, document("a", "Replaced."))
            id_ = await _saved(conversations_of(store), exchange)
            assert await _answers(conversations_of(store), id_) == [None]
            await remove(store, "a")
            assert await _answers(conversations_of(store), await _saved(conversations_of(store), exchange)) == [None]
            assert await store.verify() == []

    async def test_an_answer_follows_the_documents_of_the_earlier_answers_that_it_saw(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as store:
            revision = (await publish(store, document("a", "Ada."), document("b", "Bob."))).revision
            talks = conversations_of(store)
            id_ = await _saved(talks, _exchange())
            later = _exchange("Later.", id_, documents=("b",), revision=revision, earlier=(1,))
            await _saved(talks, later)
            await _saved(talks, replace(later, earlier=()))
            await remove(store, "a")
            assert await _answers(talks, id_) == [None, None, "Later."]
            await _saved(talks, later)  # it saw an answer that is gone now
            assert await _answers(talks, id_) == [None, None, "Later.", None]

    async def test_an_answer_of_very_many_documents_follows_any_of_them(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        names = [f"d{n}" for n in range(1_100)]
        async with open_store() as store:
            await publish(store, *(document(name, f"{name}.") for name in names))
            id_ = await _saved(conversations_of(store), _exchange(documents=names))
            assert await _answers(conversations_of(store), id_) == ["She wrote. [1]"]
            await remove(store, names[-1])
            assert await _answers(conversations_of(store), id_) == [None]

    async def test_conversations_change_neither_the_dump_nor_the_revision(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "Ada."))
            before = await dump(store)
            id_ = await _saved(conversations_of(store), _exchange())
            async with store.view(Filter()) as view:
                assert view.revision == 1
            assert await dump(store) == before
            await remove(store, "a")
            assert await dump(store) == []
            assert await conversations_of(store).conversation(id_) is not None

    async def test_conversations_are_listed_by_owner_the_last_changed_first(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "Ada."))
            talks = conversations_of(store)
            first, second, third = [await _saved(talks, _exchange()) for _ in range(3)]
            foreign = await _saved(talks, _exchange(owner="bob"))
            await _saved(talks, _exchange(conversation=first))
            listed = await talks.conversations("ada")
            assert [row.id for row in listed] == [first, third, second]
            assert [row.n_exchanges for row in listed] == [2, 1, 1]
            assert [row.id for row in await talks.conversations("bob")] == [foreign]
            cursor = f"{listed[0].updated_at} {listed[0].id}"
            assert [row.id for row in await talks.conversations("ada", cursor, 1)] == [third]
            assert [row.id for row in await talks.conversations(None)] == [first, foreign, third, second]
            with pytest.raises(InvalidInput, match="cursor"):
                await talks.conversations("ada", "nowhere")

    async def test_a_conversation_is_renamed_and_deleted(
        self, open_store: OpenStore, conversations_of: ConversationsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "Ada."))
            talks = conversations_of(store)
            id_, other = await _saved(talks, _exchange()), await _saved(talks, _exchange("Other."))
            assert await talks.rename_conversation(id_, '长城\'s "title"')
            assert (await _read(talks, id_)).conversation.title == '长城\'s "title"'
            assert await talks.delete_conversation(id_)
            assert await talks.conversation(id_) is None
            assert await _answers(talks, other) == ["Other."]
            assert not await talks.delete_conversation(id_)
            assert not await talks.rename_conversation(id_, "x")
            with pytest.raises(NotFound):
                await _saved(talks, _exchange(conversation=id_))
            assert await store.verify() == []

    async def test_limits_are_kept(self, open_store: OpenStore, conversations_of: ConversationsOf) -> None:
        limits = ConversationLimits(max_exchanges=2, max_conversations=2, max_answer_bytes=2_000)
        async with open_store() as store:
            await publish(store, document("a", "Ada."))
            talks = conversations_of(store)
            id_ = (await talks.save_exchange(_exchange(), limits)).conversation.id
            await talks.save_exchange(_exchange(conversation=id_), limits)
            with pytest.raises(InvalidInput, match="has 2 questions"):
                await talks.save_exchange(_exchange(conversation=id_), limits)
            await talks.save_exchange(_exchange(), limits)
            with pytest.raises(InvalidInput, match="2 saved conversations; at most 2 are kept"):
                await talks.save_exchange(_exchange(), limits)
            await talks.save_exchange(_exchange(owner="bob"), limits)
            with pytest.raises(InvalidInput, match="bytes"):
                await talks.save_exchange(_exchange("long " * 500, owner="cid"), limits)
            assert await talks.conversations("cid") == []
