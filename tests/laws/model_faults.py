"""The faults of a model's server, as the laws have them strike: which, when, and what may be left of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from quipu.engine import Quipu
from quipu.model.usage import UsageRow
from quipu.testing.scripted.script import INSTEAD, MIDWAY, SPOILED_RECORDS, Fault, FaultName, RequestKind
from quipu.testing.server.process import ServerHandle
from tests.laws.model_counts import asked_again, differences, spent_since
from tests.laws.model_world import script

HANGING = frozenset({FaultName.TIMEOUT, FaultName.STALL})  # a client notices nothing but that time passes
FIRST, ALWAYS = "first attempts", "always"

# One of each way a fault can go on for ever; with a larger scale all of them do.
LASTING = frozenset(
    {
        FaultName.BAD_REQUEST,
        FaultName.QUOTA,
        FaultName.RESET_MIDWAY,
        FaultName.EMPTY,
        FaultName.COUNT,
    }
)

# Whole replies that say the same in another shape, or are asked for again: the facts become what they would have been.
SHAPES = frozenset(
    {
        FaultName.NO_USAGE,
        FaultName.THINKING,
        FaultName.THINKING_UNOPENED,
        FaultName.FILTERED,
    }
)
TRANSIENT = INSTEAD | MIDWAY | SHAPES
PASSING_BY_KIND = {
    RequestKind.EXTRACT: TRANSIENT
    | (SPOILED_RECORDS - {FaultName.MISSING})
    | {FaultName.LENGTH, FaultName.EMPTY, FaultName.THINKING_UNCLOSED, FaultName.FENCES, FaultName.CHATTER},
    RequestKind.SUMMARISE: TRANSIENT | {FaultName.EMPTY, FaultName.THINKING_UNCLOSED},
    RequestKind.EMBED: frozenset(FaultName),
}
# What shows that no document can be read as things stand is told before any is taken in.
HOPELESS = frozenset({FaultName.BAD_REQUEST, FaultName.QUOTA, FaultName.FILTERED, FaultName.EMPTY})


@dataclass(frozen=True, slots=True)
class Case:
    """A fault that strikes requests of some kind: their first attempts, or always."""

    name: FaultName
    mode: str

    def __str__(self) -> str:
        return f"{self.name}, {self.mode}"

    def fault(self, *kinds: RequestKind, containing: str = "") -> Fault:
        """Return the fault; one that strikes always spares requests that do not hold a text."""
        if self.mode == FIRST:
            return Fault(name=self.name, kinds=kinds, attempts=(1,))
        return Fault(name=self.name, kinds=kinds, containing=containing)


def cases(kind: RequestKind, scale: int) -> list[Case]:
    """Return every fault that means anything for requests of a kind, in the modes that are tried at this scale."""
    names = [name for name in FaultName if Fault(name=name).can_strike(kind)]
    lasting = [name for name in names if scale > 1 or name in LASTING]
    return [*(Case(name, FIRST) for name in names), *(Case(name, ALWAYS) for name in lasting)]


def begin(server: ServerHandle, *faults: Fault, seed: str = "0") -> None:
    """Have the server follow another script and forget what it has counted."""
    server.configure(script(*faults, seed=seed))
    server.reset()


async def check_counts(kb: Quipu, server: ServerHandle, before: Sequence[UsageRow] = ()) -> None:
    """Assert that the meter says what the server does, and that no reply that is kept was asked for again."""
    served = (await asyncio.to_thread(server.settled)).requests
    assert differences(spent_since(before, await kb.usage()), served) == []
    assert asked_again(served) == []
