"""Faults: what can go wrong between a client and a model, and when it does."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import with_config

from quipu.testing.scripted.kind import CHATS, EXTRACTIONS, VECTORS, Kind
from quipu.testing.scripted.range import STRICT, Count, Seconds, Share, Size


class FaultName(StrEnum):
    """Everything a provider has been seen to do."""

    # instead of a reply
    BAD_REQUEST = "400"
    TOO_MANY_REQUESTS = "429"
    QUOTA = "quota"  # 429 too, but it will not pass: insufficient_quota
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502"  # with a page of HTML
    SERVICE_UNAVAILABLE = "503"
    TIMEOUT = "timeout"  # no answer ever
    RESET = "reset"  # before the headers
    ERROR_IN_200 = "error in 200"  # an error object where the reply should be
    NOT_JSON = "not json"  # 200 and a page of HTML, as from an address where something else answers

    # in the middle of a reply
    RESET_MIDWAY = "reset midway"
    STALL = "stall"  # the rest never comes
    CUT_BODY = "cut body"  # the connection is closed in an orderly way, too early
    UNFINISHED = "unfinished"  # the stream ends as if it were whole, without a reason or its last line
    ERROR_MIDWAY = "error midway"  # an error object in the stream

    # a whole reply, but
    LENGTH = "length"  # half of it, finish_reason "length"
    EMPTY = "empty"
    FILTERED = "filtered"  # half of it, finish_reason "content_filter"
    NO_USAGE = "no usage"  # nobody says what it cost
    THINKING = "thinking"
    THINKING_UNOPENED = "thinking unopened"  # only the closing tag
    THINKING_UNCLOSED = "thinking unclosed"  # only the opening tag, and the reply within
    FENCES = "fences"
    CHATTER = "chatter"
    LANGUAGE = "other language"

    # an extraction, but
    DELIMITERS = "wrong delimiters"
    SWAPPED = "swapped fields"
    MISSING = "missing fields"
    JSON = "json"
    UNCLOSED = "unclosed"  # no last line
    LOOP = "loop"  # one record over and over, finish_reason "length"

    # an answer, but
    UNKNOWN_CITATION = "unknown citation"
    UNSUPPORTED = "unsupported sentence"

    # vectors or scores, but
    DIMENSION = "wrong dimension"
    COUNT = "wrong count"
    NAN = "nan"
    SHUFFLED = "shuffled"  # right, but in another order, with their indices


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
    """One fault, and the requests it strikes: those that satisfy every condition given.

    `probability` is drawn for each attempt anew; left at 1 it always strikes. `calls` are numbers, from 1, among the
    requests this fault could strike, in order of arrival. `attempts` are numbers, from 1, of how often the very same
    request was made: (1,) is a fault that a second try overcomes. `kinds` and `containing` choose by what is asked.

    `retry_after_s` goes into the header of a 429, 500, 502 or 503. A fault in the middle of a reply comes after
    `n_pieces`.
    """

    name: FaultName
    probability: Share = 1.0
    calls: tuple[Size, ...] = ()
    attempts: tuple[Size, ...] = ()
    kinds: tuple[Kind, ...] = ()
    containing: str = ""
    retry_after_s: Seconds | None = None
    n_pieces: Count = 3

    def can_strike(self, kind: Kind) -> bool:
        """Say whether the fault means anything for a request of this kind."""
        return kind in (self.kinds or _kinds(self.name)) and kind in _kinds(self.name)


def mixed(*names: FaultName, probability: float, kinds: tuple[Kind, ...] = ()) -> tuple[Fault, ...]:
    """Return faults that together strike about `probability` of the requests, each equally often."""
    return tuple(Fault(name=name, probability=probability / len(names), kinds=kinds) for name in names)


def _kinds(name: FaultName) -> frozenset[Kind]:
    if name in SPOILED_RECORDS:
        return EXTRACTIONS
    if name in SPOILED_ANSWERS:
        return frozenset({Kind.ANSWER})
    if name in _REPLIES:
        return CHATS
    if name is FaultName.DIMENSION:
        return frozenset({Kind.EMBED})
    return VECTORS if name in _NUMBERS else CHATS | VECTORS
