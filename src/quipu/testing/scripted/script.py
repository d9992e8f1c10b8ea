"""Script: what scripted models reply, how fast, and which faults are injected. Files and tests use the same value."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from quipu.errors import InvalidInput


class RequestKind(StrEnum):
    """What a request asks for. `glean`: records that an extraction missed. `continue`: the rest of a cut reply.

    About reports: find their `points`, `rate` one, `imagine` one, a `primer` (first answer) and an answer to a
    `follow-up` question. `facts`: which facts concern a question. `terms`: the names in a question and the types of its
    answer. `aggregate`: describe a group of similar entities. `connect`: describe the relation of two groups. `tune`: a
    guide for reading documents.
    """

    EXTRACT = "extract"
    GLEAN = "glean"
    CONTINUE = "continue"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    PICTURE = "picture"
    PAGE = "page"
    REPORT = "report"
    ANSWER = "answer"
    REWRITE = "rewrite"
    JUDGE = "judge"
    POINTS = "points"
    RATE = "rate"
    IMAGINE = "imagine"
    PRIMER = "primer"
    FOLLOW_UP = "follow-up"
    FACTS = "facts"
    TERMS = "terms"
    AGGREGATE = "aggregate"
    CONNECT = "connect"
    TUNE = "tune"
    OTHER = "other"
    EMBED = "embed"
    RERANK = "rerank"


EXTRACTIONS = frozenset({RequestKind.EXTRACT, RequestKind.GLEAN, RequestKind.CONTINUE})
VECTORS = frozenset({RequestKind.EMBED, RequestKind.RERANK})
CHATS = frozenset(RequestKind) - VECTORS


STRICT = ConfigDict(extra="forbid")  # an unknown field is an error

Seconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]


class FaultName(StrEnum):
    """The faults of real providers that a script can inject."""

    # instead of a reply
    BAD_REQUEST = "400"
    TOO_MANY_REQUESTS = "429"
    QUOTA = "quota"  # 429 with insufficient_quota: a retry does not help
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502"  # with an HTML page
    SERVICE_UNAVAILABLE = "503"
    TIMEOUT = "timeout"  # no reply ever
    RESET = "reset"  # before the headers
    ERROR_IN_200 = "error in 200"  # an error object in place of the reply
    NOT_JSON = "not json"  # 200 and an HTML page, as from the wrong address

    # in the middle of a reply
    RESET_MIDWAY = "reset midway"
    STALL = "stall"  # the rest is never sent
    CUT_BODY = "cut body"  # the connection is closed normally, but too early
    UNFINISHED = "unfinished"  # the stream ends without a finish reason or its last line
    ERROR_MIDWAY = "error midway"  # an error object in the stream

    # a complete reply with a fault
    LENGTH = "length"  # half of it, finish_reason "length"
    EMPTY = "empty"
    FILTERED = "filtered"  # half of it, finish_reason "content_filter"
    NO_USAGE = "no usage"  # token usage is missing
    THINKING = "thinking"
    THINKING_UNOPENED = "thinking unopened"  # only the closing tag
    THINKING_UNCLOSED = "thinking unclosed"  # only the opening tag, with the reply inside
    FENCES = "fences"
    CHATTER = "chatter"
    LANGUAGE = "other language"

    # an extraction with a fault
    DELIMITERS = "wrong delimiters"
    SWAPPED = "swapped fields"
    MISSING = "missing fields"
    JSON = "json"
    UNCLOSED = "unclosed"  # no last line
    LOOP = "loop"  # one record repeated, finish_reason "length"

    # an answer with a fault
    UNKNOWN_CITATION = "unknown citation"
    UNSUPPORTED = "unsupported sentence"

    # vectors or scores with a fault
    DIMENSION = "wrong dimension"
    COUNT = "wrong count"
    NAN = "nan"
    SHUFFLED = "shuffled"  # correct, but in another order, with their indices


INSTEAD = frozenset(
    {
        FaultName.BAD_REQUEST,
        FaultName.TOO_MANY_REQUESTS,
        FaultName.QUOTA,
        FaultName.SERVER_ERROR,
        FaultName.BAD_GATEWAY,
        FaultName.SERVICE_UNAVAILABLE,
        FaultName.TIMEOUT,
        FaultName.RESET,
        FaultName.ERROR_IN_200,
        FaultName.NOT_JSON,
    }
)
MIDWAY = frozenset(
    {
        FaultName.RESET_MIDWAY,
        FaultName.STALL,
        FaultName.CUT_BODY,
        FaultName.UNFINISHED,
        FaultName.ERROR_MIDWAY,
    }
)
_REPLIES = frozenset(
    {
        FaultName.LENGTH,
        FaultName.EMPTY,
        FaultName.FILTERED,
        FaultName.UNFINISHED,
        FaultName.ERROR_MIDWAY,
        FaultName.THINKING,
        FaultName.THINKING_UNOPENED,
        FaultName.THINKING_UNCLOSED,
        FaultName.FENCES,
        FaultName.CHATTER,
        FaultName.LANGUAGE,
    }
)
SPOILED_RECORDS = frozenset(
    {
        FaultName.DELIMITERS,
        FaultName.SWAPPED,
        FaultName.MISSING,
        FaultName.JSON,
        FaultName.UNCLOSED,
        FaultName.LOOP,
    }
)
SPOILED_ANSWERS = frozenset({FaultName.UNKNOWN_CITATION, FaultName.UNSUPPORTED})
_NUMBERS = frozenset({FaultName.COUNT, FaultName.NAN, FaultName.SHUFFLED})


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault and the requests it affects: those that satisfy all conditions.

    `probability` is drawn for each attempt. `calls` are positions, from 1, among the requests that this fault could
    affect, in order of arrival. `attempts` count, from 1, how often the same request was made: with (1,) a retry
    succeeds. `kinds` and `containing` select requests by kind and text.

    `retry_after_s` is the header of a 429, 500, 502 or 503. A fault in the middle of a reply happens after `n_pieces`.
    """

    name: FaultName
    probability: Share = 1.0
    calls: tuple[Size, ...] = ()
    attempts: tuple[Size, ...] = ()
    kinds: tuple[RequestKind, ...] = ()
    containing: str = ""
    retry_after_s: Seconds | None = None
    n_pieces: Count = 3

    def can_strike(self, kind: RequestKind) -> bool:
        """Return whether the fault applies to requests of this kind."""
        return kind in (self.kinds or _kinds(self.name)) and kind in _kinds(self.name)


def fault_mix(*names: FaultName, probability: float, kinds: tuple[RequestKind, ...] = ()) -> tuple[Fault, ...]:
    """Return faults that together affect about `probability` of the requests, each equally often."""
    return tuple(Fault(name=name, probability=probability / len(names), kinds=kinds) for name in names)


def _kinds(name: FaultName) -> frozenset[RequestKind]:
    if name in SPOILED_RECORDS:
        return EXTRACTIONS
    if name in SPOILED_ANSWERS:
        return frozenset({RequestKind.ANSWER})
    if name in _REPLIES:
        return CHATS
    if name is FaultName.DIMENSION:
        return frozenset({RequestKind.EMBED})
    return VECTORS if name in _NUMBERS else CHATS | VECTORS


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a reply takes, in seconds.

    The time to the last byte has a log-normal distribution with mean `mean_s`; `sigma` is the standard deviation of its
    logarithm, 0 for a constant time. A streamed reply begins after `first_share` of this time, and the rest is spread
    over its pieces. `piece_s` is added for every piece, to simulate slow tokens.
    """

    mean_s: Seconds = 0.0
    sigma: Seconds = 0.0
    first_share: Share = 1.0
    piece_s: Seconds = 0.0


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many requests are answered at once (None for any number), and what happens to the others.

    `reject`: status 429, with Retry-After if `retry_after_s` is set. `slow`: replies above the limit take longer, by
    the number of concurrent requests divided by the limit.
    """

    concurrent: Size | None = None
    beyond: Literal["reject", "slow"] = "reject"
    retry_after_s: Seconds | None = None

    def rejects(self, n_under_way: int) -> bool:
        """Return whether the last of `n_under_way` concurrent requests is rejected."""
        return self.concurrent is not None and self.beyond == "reject" and n_under_way > self.concurrent

    def slowdown(self, n_under_way: int) -> float:
        """Return the factor by which the last of `n_under_way` concurrent requests is slower."""
        is_slow = self.concurrent is not None and self.beyond == "slow"
        return max(1.0, n_under_way / self.concurrent) if is_slow and self.concurrent else 1.0


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class CannedReply:
    """A fixed reply to chat requests of these kinds (() for any) that contain this text ("" for any)."""

    text: str
    kinds: tuple[RequestKind, ...] = ()
    containing: str = ""


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRules:
    """How replies are made.

    `extraction` is a file of recorded extractions (one line each: `passage_id`, `entities`, `triples`) beside the
    `corpus.jsonl` of its passages. A passage in it gets its recorded extraction; for other text a few rules find up to
    `max_entities` entities and as many relations. The first reply omits the last `n_withheld` records, and gleaning
    returns them. The first of `replies` that matches is sent word for word.
    """

    extraction: str = ""
    max_entities: Size = 20
    n_withheld: Count = 0
    replies: tuple[CannedReply, ...] = ()


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the server accepts; None, "" and () set no limit.

    Without `models` every model name is accepted. `rejects` names parameters that get status 400, for example
    `max_tokens`, `stream_options` or `dimensions`; `json_object` and `json_schema` name a response format.
    `ignores_format`: a response format is accepted but has no effect. `context_window` limits the tokens of the prompt
    plus the requested reply. `caches_prefixes`: prompts that share a prefix of 1,024 tokens or more with an earlier one
    report cached tokens. `piece_chars` is the length of the pieces of a streamed reply.
    """

    models: tuple[str, ...] = ()
    api_key: str = field(default="", repr=False)
    context_window: Size | None = None
    dimension: Size = 64
    max_inputs: Size = 2048
    rejects: tuple[str, ...] = ()
    ignores_format: bool = False
    reports_usage: bool = True
    caches_prefixes: bool = False
    piece_chars: Size = 16


@with_config(STRICT)
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A complete script. All random draws are functions of `seed`, the request and its number of attempts.

    The first of `faults` that applies is injected. `log` names a file that gets one JSON line for every request when it
    ends.
    """

    seed: str = "0"
    latency: Latency = field(default_factory=Latency)
    limit: Limit = field(default_factory=Limit)
    faults: tuple[Fault, ...] = ()
    answering: ReplyRules = field(default_factory=ReplyRules)
    service: Service = field(default_factory=Service)
    log: str = ""


_SCRIPT = TypeAdapter(Script)


def parse_script(content: str | bytes) -> Script:
    """Return the script of a JSON text. Raises InvalidInput with the field that is invalid."""
    try:
        return _SCRIPT.validate_json(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise InvalidInput(f"The script is wrong at {place or 'its beginning'}: {problem['msg']}.") from error


def read_script(path: Path) -> Script:
    """Return the script in a file."""
    return parse_script(path.read_bytes())


def write_script(script: Script) -> bytes:
    """Return the script as JSON."""
    return _SCRIPT.dump_json(script, indent=1)
