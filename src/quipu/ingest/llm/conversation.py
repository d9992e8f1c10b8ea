"""Conversation: the calls to a model that read one chunk: a first request, continuations of a cut reply, gleaning.

A request depends only on the chunk, the options and whole replies that are cached, never on time, chance or a reply
that broke off. So every call made before a crash is found again by its hash. A reply that broke off is requested once
more, with the same request. Only if that breaks off too are its whole lines kept and the rest requested. If cached
replies alone lead to no result, the whole conversation is repeated as the next attempt, so that a second try does not
get the same replies for ever.

Differences from LightRAG's code:
- Every chunk is asked once more for what is missing (gleaning) → `max_gleaning` times at most, and only where at least
  `MIN_MISSED` and over half of the names in the text are missing (always with `always_glean`), because most replies
  miss little.
- 40 entities and 100 records in a reply → `MIN_ENTITIES` entities, and one more for every `TOKENS_PER_ENTITY` tokens of
  the chunk, because a short chunk holds few.
- The prompt takes relations of more than two ends apart → it asks for relations between two names, because every line
  of it is paid for with each chunk.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from quipu.errors import Overloaded, Refused
from quipu.ingest.llm.grounding import MAX_MISSED_SHOWN, NO_NAMES, GroundingText, detect_names, may_miss_names
from quipu.ingest.llm.validation import RecordValidator, names_in_record
from quipu.model.chat import ChatRequest, FinishReason, Message, PromptText, Role
from quipu.model.extraction import ChunkInput, ExtractedEntity, GlossaryTerm, Ontology, TypeRule
from quipu.model.graph import ENTITY_TYPES, OTHER_TYPE
from quipu.ports.providers import LLM
from quipu.prompts.extraction import (
    Format,
    Guidance,
    PromptExample,
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

MAX_CALLS = 8  # for one reply and its continuations
MAX_INTERRUPTIONS = 3
# A reply is endless once it holds this many times more records than entities were asked for.
MAX_RECORDS_PER_ENTITY = 8
MAX_TERMS = 30

# Output limits by tokens of the chunk, as in EdgeQuake: 4,096, 8,192 and 16,384 tokens. A reply usually takes half the
# tokens of its chunk; a model that thinks first takes several times that.
OUTPUT_STEPS = ((1_500, 4_096), (4_000, 8_192))
LARGEST_OUTPUT_STEP = 16_384
MIN_ENTITIES = 10
TOKENS_PER_ENTITY = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """How a model extracts; every option is part of the extractor's identity.

    `entity_types` are the types to ask for if the ontology has none. Up to `max_gleaning` more calls ask for what the
    first reply missed: if the text contains names that the reply leaves out, or always. `language` is the language of
    descriptions, "" for the language of the text. `max_output_tokens` is the highest limit on the length of a reply.
    `prompts` are the user's own instructions; only those of extraction and gleaning count in the identity.
    """

    format: Format = "lines"
    entity_types: tuple[str, ...] = ENTITY_TYPES
    language: str = ""
    max_gleaning: int = 1
    always_glean: bool = False
    with_claims: bool = False
    max_output_tokens: int = 32_768
    ontology: Ontology = field(default_factory=Ontology)
    prompts: tuple[PromptText, ...] = field(default=(), repr=False)

    @property
    def types(self) -> tuple[TypeRule, ...]:
        """The entity types to ask for, including `Other` unless the ontology is strict."""
        rules = self.ontology.types or tuple(TypeRule(name=name) for name in self.entity_types)
        if self.ontology.is_strict or OTHER_TYPE in (rule.name for rule in rules):
            return rules
        return (*rules, TypeRule(name=OTHER_TYPE))

    @property
    def guidance(self) -> Guidance:
        """What the prompt contains of these options."""
        return Guidance(
            format=self.format,
            types=self.types,
            relations=self.ontology.relations,
            is_strict=self.ontology.is_strict,
            language=self.language,
            with_claims=self.with_claims,
            domain=self.ontology.domain,
            texts=self.prompts,
            examples=tuple(
                PromptExample(
                    text=example.text, reply=render_records((*example.entities, *example.relations), self.format)
                )
                for example in self.ontology.examples
            ),
        )


class ConversationSetup:
    """The settings shared by all chunks of a run: options, validator, system message and schema."""

    def __init__(self, options: ExtractionOptions, validator: RecordValidator, type_words: frozenset[str]) -> None:
        self.options = options
        self.validator = validator
        self.type_words = type_words
        self.system = Message("system", render_system(options.guidance))
        self.schema = render_schema(options.guidance) if options.format == "json" else ""


@dataclass(frozen=True, slots=True)
class _RecordReply:
    """One reply of the model, parsed."""

    records: Sequence[ExtractionRecord]
    finish: FinishReason
    is_truncated: bool


class Conversation:
    """Reads one chunk. `records` are all records so far in the order of the replies, also after an error."""

    def __init__(self, llm: LLM, setup: ConversationSetup, chunk: ChunkInput, count: Callable[[str], int]) -> None:
        self._llm, self._setup, self._chunk = llm, setup, chunk
        self._n_tokens = count(chunk.text)
        self.text = GroundingText(chunk)
        self.records: dict[ExtractionRecord, None] = {}
        self._interrupted: Sequence[ExtractionRecord] = ()
        self._attempt = self._n_new_calls = 0

    async def run(self) -> None:
        """Make all calls for the chunk; if cached replies alone lead to a refusal, repeat them as the next attempt.

        Raises Refused if the model gives no usable reply, and the errors of the model's calls.
        """
        while not await self._run_attempt():
            self._attempt += 1
            self._interrupted = ()
            self.records.clear()

    async def _run_attempt(self) -> bool:
        """Make all calls; return False if cached replies alone led to a refusal."""
        self._n_new_calls = 0
        try:
            await self._extract()
            for _ in range(self._setup.options.max_gleaning):
                if not await self._glean():
                    break
        except BaseException as error:
            self._add(self._interrupted)
            if isinstance(error, Refused) and not self._n_new_calls:
                return False
            raise
        return True

    async def _extract(self) -> None:
        """Make the first request; repeat it once if the reply names nothing of a text that contains names."""
        await self._request(self.user_message())
        if self._setup.options.ontology.is_strict or self._has_grounded_name():
            return
        detected = detect_names(self._chunk.text)
        if not detected.is_certain:
            return
        await self._request(self.user_message(is_again=True))
        if not self._has_grounded_name():
            raise Refused(
                "The model named nothing in a text that contains names, such as "
                f"{next(iter(detected.name_by_key.values()))!r}.",
                remedy="`quipu doctor` shows what it replies; use a larger model, or turn its thinking off.",
            )

    def _has_grounded_name(self) -> bool:
        return self._setup.validator.has_grounded_name(self.records, self.text)

    async def _glean(self) -> bool:
        """Ask for missed entities and relations, if that is worth a call; say whether new records came."""
        options = self._setup.options
        names = [name for record in self.records for name in names_in_record(record)]
        may_miss = options.always_glean or may_miss_names(self._chunk.text, names)
        detected = detect_names(self._chunk.text) if may_miss else NO_NAMES
        missed = detected.missed_by(names)
        n_entities = sum(isinstance(record, ExtractedEntity) for record in self.records)
        is_worth_it = detected.is_mostly(missed) and n_entities < entity_limit(self._n_tokens)
        if not (options.always_glean or is_worth_it):
            return False
        n_before = len(self.records)
        reply = Message("assistant", render_records(self.records, options.format))
        gleaning = render_gleaning(
            chunk_boundary(self._chunk), missed[:MAX_MISSED_SHOWN], options.format, options.prompts
        )
        await self._request(self.user_message(), reply, Message("user", gleaning))
        return len(self.records) > n_before

    async def _request(self, *messages: Message) -> None:
        """Get one whole reply, in as many calls as it needs."""
        max_limit = self._setup.options.max_output_tokens
        limit = output_token_limit(self._n_tokens, max_limit)
        records: dict[ExtractionRecord, None] = {}
        n_interrupted = n_without_new = 0
        for _ in range(MAX_CALLS):
            reply = await self._call((*messages, *self._continuation(records)), limit)
            reply_records = reply.records
            if reply.finish is FinishReason.INTERRUPTED:
                n_interrupted += 1
                if n_interrupted == 1:
                    self._interrupted = reply_records
                    continue
                reply_records = max(self._interrupted, reply_records, key=len)
            new = [record for record in reply_records if record not in records]
            records |= dict.fromkeys(new)
            self._add(new)
            if reply.finish is FinishReason.STOP and not (reply.is_truncated and new):
                self._interrupted = ()
                return
            n_without_new = 0 if new else n_without_new + 1
            is_stuck = n_without_new > 0 and (limit == max_limit or (n_without_new > 1 and bool(records)))
            is_stuck = is_stuck or len(records) > MAX_RECORDS_PER_ENTITY * entity_limit(self._n_tokens)
            _raise_if_hopeless(reply.finish, n_interrupted, is_stuck=is_stuck, limit=limit)
            if reply.finish is not FinishReason.INTERRUPTED:
                limit = min(2 * limit, max_limit)
        raise _endless_reply(limit)

    async def _call(self, messages: Sequence[Message], limit: int) -> _RecordReply:
        setup = self._setup
        request = ChatRequest(
            messages=(setup.system, *messages),
            role=Role.EXTRACT,
            max_output_tokens=limit,
            schema=setup.schema,
            attempt=self._attempt,
            documents=self._chunk.documents,
        )
        self._n_new_calls += 1
        completion = await self._llm.complete(request)
        self._n_new_calls -= completion.is_reused
        parser = ExtractionReplyParser(setup.type_words)
        parser.feed(completion.text)
        parser.close(is_complete=completion.finish is FinishReason.STOP)
        return _RecordReply(parser.records, completion.finish, parser.is_truncated)

    def _continuation(self, records: Collection[ExtractionRecord]) -> tuple[Message, ...]:
        """Return the messages that ask for the rest of a reply; none before the first records."""
        if not records:
            return ()
        format_ = self._setup.options.format
        reply = render_records(records, format_, is_done=False)
        return Message("assistant", reply), Message("user", render_continuation(format_))

    def user_message(self, *, is_again: bool = False) -> Message:
        """Return the message with the text; `is_again` if an earlier reply to it held no record."""
        glossary = glossary_terms_in(self.text, self._setup.options.ontology.glossary)
        return Message("user", render_user(self._chunk, entity_limit(self._n_tokens), glossary, is_again=is_again))

    def _add(self, records: Sequence[ExtractionRecord]) -> None:
        self.records |= dict.fromkeys(records)


def output_token_limit(chunk_tokens: int, max_limit: int) -> int:
    """Return the output limit of the first reply to a chunk, by its number of tokens; at most `max_limit`."""
    step = next((tokens for size, tokens in OUTPUT_STEPS if chunk_tokens <= size), LARGEST_OUTPUT_STEP)
    return min(step, max_limit)


def entity_limit(chunk_tokens: int) -> int:
    """Return how many entities a reply may name: 10, and one more per 40 tokens; 40 for a chunk of 1,200 tokens."""
    return MIN_ENTITIES + chunk_tokens // TOKENS_PER_ENTITY


def glossary_terms_in(text: GroundingText, glossary: Sequence[GlossaryTerm]) -> tuple[GlossaryTerm, ...]:
    """Return the terms whose name or alias the text contains exactly, in order; at most `MAX_TERMS`."""
    terms = [term for term in glossary if any(map(text.contains_exactly, (term.name, *term.aliases)))]
    return tuple(terms[:MAX_TERMS])


def _raise_if_hopeless(finish: FinishReason, n_interrupted: int, *, is_stuck: bool, limit: int) -> None:
    """Raise if a request for the rest of a reply would lead to nothing."""
    if finish is FinishReason.FILTERED:
        raise Refused(
            "The provider withheld the rest of the reply.", remedy="Leave the passage out, or use another model."
        )
    if finish is FinishReason.INTERRUPTED:
        if n_interrupted >= MAX_INTERRUPTIONS or is_stuck:
            raise Overloaded(
                f"The reply broke off {n_interrupted} times.",
                remedy="Allow more time for a call (llm_timeout_s), then `quipu retry`.",
            )
    elif is_stuck:
        raise _endless_reply(limit)


def _endless_reply(limit: int) -> Refused:
    return Refused(
        f"The reply did not end within {limit:,} tokens.",
        remedy="Turn the model's thinking off, cut smaller chunks (chunk_tokens), or use another model.",
    )
