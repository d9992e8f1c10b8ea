"""Conversation: what a model is asked about one chunk until it has said all it will.

A request is a function of the chunk, the options and whole replies that are kept, never of time, chance or a reply that
broke off: so each call made before a crash is found again by its hash. A reply that broke off is asked for once more,
word for word. Only where that breaks off too are its whole lines kept, and the rest asked for. Where replies kept from
before are of no use all of it is asked anew, so that a second try is not told the same for ever.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from quipu.errors import Overloaded, Refused
from quipu.ingest.llm.allowance import entity_limit, output_tokens
from quipu.ingest.llm.conform import Conformer, names_of
from quipu.ingest.llm.grounds import Grounds
from quipu.ingest.llm.named import MAX_SHOWN, NONE, may_be_missed, names_in
from quipu.ingest.llm.options import ExtractionOptions
from quipu.ingest.llm.terms import terms_in
from quipu.model.chat import ChatRequest, FinishReason, Message, Role
from quipu.model.extraction import ChunkInput, ExtractedEntity
from quipu.ports.providers import LLM
from quipu.prompts.extraction import (
    chunk_boundary,
    render_continuation,
    render_gleaning,
    render_records,
    render_schema,
    render_system,
    render_user,
)
from quipu.text.extraction_records import ExtractionRecord
from quipu.text.extraction_reply import ExtractionReplyParser

MAX_CALLS = 8  # for one reply and its rest
MAX_BROKEN = 3
MANY = 8  # times as many records as entities were asked for: a reply that comes to no end, however new each record is


class Plan:
    """What is the same for every chunk of a run."""

    def __init__(self, options: ExtractionOptions, conformer: Conformer, type_words: frozenset[str]) -> None:
        self.options = options
        self.conformer = conformer
        self.type_words = type_words
        self.system = Message("system", render_system(options.guidance))
        self.schema = render_schema(options.guidance) if options.format == "json" else ""


@dataclass(slots=True)
class _Reply:
    """One attempt at a reply, read."""

    records: list[ExtractionRecord]
    finish: FinishReason
    is_half: bool


class Conversation:
    """Reads one chunk. `records` are all that was said so far, also after an error, the first reply's first."""

    def __init__(self, llm: LLM, plan: Plan, chunk: ChunkInput, count: Callable[[str], int]) -> None:
        self._llm, self._plan, self._chunk = llm, plan, chunk
        self._n_tokens = count(chunk.text)
        self.grounds = Grounds(chunk)
        self.records: dict[ExtractionRecord, None] = {}
        self._broken_off: Sequence[ExtractionRecord] = ()
        self._attempt = self._n_asked = 0

    async def hold(self) -> None:
        """Ask until all is said; where kept replies alone led nowhere, ask the same anew, as the next attempt.

        Raises Refused where the model gives no usable reply, and what the model's own calls raise.
        """
        while not await self._is_held():
            self._attempt += 1
            self._broken_off = ()
            self.records.clear()

    async def _is_held(self) -> bool:
        """Ask until all is said; return False where kept replies alone led nowhere."""
        self._n_asked = 0
        try:
            await self._first()
            for _ in range(self._plan.options.max_gleaning):
                if not await self._ask_again():
                    break
        except BaseException as error:
            self._take(self._broken_off)
            if isinstance(error, Refused) and not self._n_asked:
                return False
            raise
        return True

    async def _first(self) -> None:
        await self._ask(self.message())
        if self._plan.options.ontology.is_strict or self._names_something():
            return
        named = names_in(self._chunk.text)
        if not named.is_sure:
            return
        await self._ask(self.message(is_again=True))
        if not self._names_something():
            raise Refused(
                f"The model named nothing in a text that has names, as {next(iter(named.name_by_key.values()))!r}.",
                remedy="`quipu doctor` shows what it replies; use a larger model, or turn its thinking off.",
            )

    def _names_something(self) -> bool:
        return self._plan.conformer.names_something(self.records, self.grounds)

    async def _ask_again(self) -> bool:
        """Ask for what was missed, where that is worth it; say whether anything new came."""
        options = self._plan.options
        found = [name for record in self.records for name in names_of(record)]
        named = names_in(self._chunk.text) if options.always_glean or may_be_missed(self._chunk.text, found) else NONE
        missed = named.missed_by(found)
        n_entities = sum(isinstance(record, ExtractedEntity) for record in self.records)
        is_worth_it = named.are_many(missed) and n_entities < entity_limit(self._n_tokens)
        if not (options.always_glean or is_worth_it):
            return False
        n_before = len(self.records)
        said = Message("assistant", render_records(self.records, options.format))
        again = render_gleaning(chunk_boundary(self._chunk), missed[:MAX_SHOWN], options.format)
        await self._ask(self.message(), said, Message("user", again))
        return len(self.records) > n_before

    async def _ask(self, *said: Message) -> None:
        """Have one reply to the end, in as many calls as it takes."""
        cap = self._plan.options.max_output_tokens
        limit = output_tokens(self._n_tokens, cap)
        got: dict[ExtractionRecord, None] = {}
        n_broken = n_idle = 0
        for _ in range(MAX_CALLS):
            reply = await self._reply((*said, *self._so_far(got)), limit)
            if reply.finish is FinishReason.INTERRUPTED:
                n_broken += 1
                if n_broken == 1:
                    self._broken_off = reply.records
                    continue
                reply.records = max(list(self._broken_off), reply.records, key=len)
            new = [record for record in reply.records if record not in got]
            got |= dict.fromkeys(new)
            self._take(new)
            if reply.finish is FinishReason.STOP and not (reply.is_half and new):
                self._broken_off = ()
                return
            n_idle = 0 if new else n_idle + 1
            is_stuck = n_idle > 0 and (limit == cap or (n_idle > 1 and bool(got)))
            is_stuck = is_stuck or len(got) > MANY * entity_limit(self._n_tokens)
            _check_hope(reply.finish, n_broken, is_stuck=is_stuck, limit=limit)
            if reply.finish is not FinishReason.INTERRUPTED:
                limit = min(2 * limit, cap)
        raise _endless(limit)

    async def _reply(self, messages: Sequence[Message], limit: int) -> _Reply:
        plan = self._plan
        request = ChatRequest(
            messages=(plan.system, *messages),
            role=Role.EXTRACT,
            max_output_tokens=limit,
            schema=plan.schema,
            attempt=self._attempt,
            documents=self._chunk.documents,
        )
        self._n_asked += 1
        completion = await self._llm.complete(request)
        self._n_asked -= completion.is_reused
        reader = ExtractionReplyParser(plan.type_words)
        reader.feed(completion.text)
        reader.close(is_complete=completion.finish is FinishReason.STOP)
        return _Reply(reader.records, completion.finish, reader.is_truncated)

    def _so_far(self, got: Collection[ExtractionRecord]) -> tuple[Message, ...]:
        if not got:
            return ()
        form = self._plan.options.format
        return Message("assistant", render_records(got, form, is_done=False)), Message(
            "user", render_continuation(form)
        )

    def message(self, *, is_again: bool = False) -> Message:
        """Return the message with the text; `is_again` for a second try at a first reply."""
        glossary = terms_in(self.grounds, self._plan.options.ontology.glossary)
        return Message("user", render_user(self._chunk, entity_limit(self._n_tokens), glossary, is_again=is_again))

    def _take(self, records: Sequence[ExtractionRecord]) -> None:
        self.records |= dict.fromkeys(records)


def _check_hope(finish: FinishReason, n_broken: int, *, is_stuck: bool, limit: int) -> None:
    """Raise where asking for the rest of a reply would lead nowhere."""
    if finish is FinishReason.FILTERED:
        raise Refused(
            "The provider withheld the rest of the reply.", remedy="Leave the passage out, or use another model."
        )
    if finish is FinishReason.INTERRUPTED:
        if n_broken >= MAX_BROKEN or is_stuck:
            raise Overloaded(
                f"The reply broke off {n_broken} times.",
                remedy="Allow more time for a call (llm_timeout_s), then `quipu retry`.",
            )
    elif is_stuck:
        raise _endless(limit)


def _endless(limit: int) -> Refused:
    return Refused(
        f"The reply did not come to an end, with up to {limit:,} tokens allowed.",
        remedy="Turn the model's thinking off, cut smaller chunks (chunk_tokens), or use another model.",
    )
