"""What the scripted server counted, beside what the index says it has spent."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from quipu.model.chat import TokenCount
from quipu.model.ids import digest
from quipu.model.usage import Stage, UsageRow
from quipu.testing.scripted.script import MIDWAY, FaultName, RequestKind
from quipu.testing.server.request_log import LoggedRequest
from quipu.wiring.preflight import PROBE_TEXT

# The check before work, which asks whether the model answers at all, is of no kind and counted with extraction.
KINDS_BY_STAGE: Mapping[Stage, tuple[RequestKind, ...]] = {
    Stage.EXTRACT: (RequestKind.EXTRACT, RequestKind.GLEAN, RequestKind.CONTINUE, RequestKind.OTHER),
    Stage.KEYWORDS: (RequestKind.KEYWORDS, RequestKind.REWRITE),
    Stage.SUMMARISE: (RequestKind.SUMMARISE,),
    Stage.REPORT: (RequestKind.REPORT, RequestKind.AGGREGATE, RequestKind.CONNECT),
    Stage.ANSWER: (RequestKind.ANSWER,),
    Stage.EMBED: (RequestKind.EMBED,),
    Stage.RERANK: (RequestKind.RERANK,),
}
# Replies that are not kept, as to ask again may bring another one.
UNKEPT = frozenset({FaultName.FILTERED, FaultName.EMPTY})
# Whole replies in numbers that cannot be used: paid for, so they count at most what was reserved.
UNUSABLE = frozenset({FaultName.DIMENSION, FaultName.COUNT, FaultName.NAN})
# Broken replies that a model has worked on; an error at once costs nothing.
WORKED_ON = MIDWAY | {FaultName.TIMEOUT, FaultName.RESET}


def differences(rows: Sequence[UsageRow], served: Sequence[LoggedRequest]) -> list[str]:
    """Return where the meter disagrees with the server, in words: none where it keeps its promises.

    Completed calls are counted as the server does, to the token unless the server kept its count to itself; of broken
    ones there is an upper bound.
    """
    found: list[str] = []
    for stage, kinds in KINDS_BY_STAGE.items():
        counted = [row for row in rows if row.stage is stage]
        asked = [each for each in served if each.kind in kinds]
        whole = [each for each in asked if each.is_completed and not _is_unusable(each)]
        broken = [each for each in asked if _is_unusable(each) or (not each.is_completed and each.fault in WORKED_ON)]
        n_calls, n_broken = sum(row.n_calls for row in counted), sum(row.n_interrupted for row in counted)
        if n_calls != len(whole):
            found.append(f"{stage}: {n_calls} calls counted, {len(whole)} completed")
        if n_broken < len(broken):
            found.append(f"{stage}: {n_broken} interrupted calls counted, {len(broken)} were")
        if (tokens := _tokens(counted)) != (given := _given(whole)) and not _is_silent(whole):
            found.append(f"{stage}: {tokens} counted, {given} given")
        most, cost = _most(counted), _size(_given(broken))
        if most < cost:
            found.append(f"{stage}: at most {most} tokens of broken replies, by the server {cost}")
    return found


def spent_since(before: Sequence[UsageRow], after: Sequence[UsageRow]) -> list[UsageRow]:
    """Return what was counted in between."""
    known = {row.key: row for row in before}
    return [_less(row, known[row.key]) if row.key in known else row for row in after]


def asked_again(served: Sequence[LoggedRequest]) -> list[str]:
    """Return the requests that were asked for again after they had got a whole reply that is kept."""
    n_kept = Counter(each.key for each in served if each.is_completed and _is_kept(each))
    return [f"{each.kind} {each.key[:8]} {n_kept[each.key]}×" for each in served if n_kept[each.key] > 1]


def completed(served: Sequence[LoggedRequest], *kinds: RequestKind) -> list[LoggedRequest]:
    """Return the requests of these kinds, or of any, that got a whole reply."""
    return [each for each in served if each.is_completed and each.kind in (kinds or RequestKind)]


def _is_kept(served: LoggedRequest) -> bool:
    """Say whether a reply is kept: not one to a check, nor a reranker's, nor (to any use) a mere thought."""
    is_thought = served.fault == FaultName.THINKING_UNCLOSED and served.kind in (
        RequestKind.SUMMARISE,
        RequestKind.ANSWER,
    )
    is_check = served.kind is RequestKind.OTHER or served.text_hash == digest(PROBE_TEXT)
    is_unkept = served.kind is RequestKind.RERANK or served.fault in UNKEPT | UNUSABLE
    return not (is_thought or is_check or is_unkept)


def _is_unusable(served: LoggedRequest) -> bool:
    return served.is_completed and served.fault in UNUSABLE


def _is_silent(served: Collection[LoggedRequest]) -> bool:
    return any(each.fault == FaultName.NO_USAGE for each in served)


def _tokens(rows: Sequence[UsageRow]) -> TokenCount:
    return sum((row.tokens for row in rows), TokenCount())


def _given(served: Sequence[LoggedRequest]) -> TokenCount:
    return sum((each.tokens for each in served), TokenCount())


def _most(rows: Sequence[UsageRow]) -> int:
    return sum(_size(row.interrupted_tokens) for row in rows)


def _size(tokens: TokenCount) -> int:
    return tokens.input + tokens.output


def _less(row: UsageRow, before: UsageRow) -> UsageRow:
    return replace(
        row,
        n_calls=row.n_calls - before.n_calls,
        tokens=_fewer(row.tokens, before.tokens),
        n_interrupted=row.n_interrupted - before.n_interrupted,
        interrupted_tokens=_fewer(row.interrupted_tokens, before.interrupted_tokens),
    )


def _fewer(tokens: TokenCount, before: TokenCount) -> TokenCount:
    return TokenCount(
        input=tokens.input - before.input, cached=tokens.cached - before.cached, output=tokens.output - before.output
    )
