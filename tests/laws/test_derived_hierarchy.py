"""Law 1 of the hierarchy, over enough entities for two layers: any history ends in that of a fresh build."""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest

from quipu.algo import vector_clusters
from quipu.derive import hierarchy
from quipu.derive.derivation import DerivationContext
from quipu.model.delta import Delta, DocumentFacts
from quipu.testing.facts import document, entity, passage, relation
from tests.laws.test_reports import _open

N_DOCUMENTS, N_STEPS = 80, 3
STRANGERS = 1_000  # the document nobody of which is in another
MERE = 3  # the version that only names people
PEOPLE = [
    f"{trade} {town}"
    for trade in ("Baker", "Cooper", "Dyer", "Smith", "Tailor", "Weaver")
    for town in map(str, range(40))
]


def tale(number: int, version: int = 0) -> DocumentFacts:
    """Return a document about five people; each version says something else of some of them, MERE nothing at all."""
    random = Random(f"tale {number}")
    names = [f"Nobody {each}" for each in range(5)] if number == STRANGERS else random.sample(PEOPLE, 5)
    text = f"Tale {number}, {version}: {', '.join(names)}."
    if version == MERE:
        return document(f"tale{number}", passage(text, *(entity(name, "Person", "") for name in names)))
    said = [entity(name, "Person", f"{name} was seen in year {version}.") for name in names[: 2 + version]]
    said += [entity(name, "Person", f"{name} was there.") for name in names[2 + version :]]
    ties = [relation(names[0], other, f"They met in year {version}.", weight=1 + version) for other in names[1:]]
    return document(f"tale{number}", passage(text, *said, *ties))


def history(seed: int) -> list[dict[int, int]]:
    """Return the versions by document that are there after each step.

    In the last two nothing is taken back: some people are spoken of, and others are named; then come strangers.
    """
    random = Random(f"hierarchy {seed}")
    states = [dict.fromkeys(range(N_DOCUMENTS), 0)]
    for _ in range(N_STEPS):
        changed = {random.randrange(N_DOCUMENTS + 5): random.randrange(MERE + 1) for _ in range(2)}
        gone = random.choice([number for number in states[-1] if number not in changed])
        after = {**states[-1], **changed}
        del after[gone]
        states.append(after)
    spoken_of = {**states[-1], N_DOCUMENTS + 5: 0, **dict.fromkeys(range(N_DOCUMENTS + 6, N_DOCUMENTS + 12), MERE)}
    return [*states, spoken_of, {**spoken_of, STRANGERS: 0}]


async def live(context: DerivationContext, seed: int) -> None:
    """Live through a history, with a refresh after each step."""
    before: dict[int, int] = {}
    for after in history(seed):
        changed = [tale(*each) for each in after.items() if each not in before.items()]
        gone = [f"tale{number}" for number in before if number not in after]
        await context.store.commit(Delta(publish=changed))
        await context.store.commit(Delta(remove=gone))
        await refresh(context)
        before = after


async def refresh(context: DerivationContext) -> None:
    """Bring the hierarchy up to date."""
    report = await hierarchy.refresh(context, False)
    assert (report.failed, report.stopped) == ((), "")


async def ended(context: DerivationContext) -> list[str]:
    """Return the canonical lines of a sound index."""
    assert await context.store.verify() == []
    async with context.store.view() as view:
        lines = [line async for line in view.dump()]
    assert sum('"aggregate' in line for line in lines) > 5, "too few to be a hierarchy"
    return lines


async def both(folder: Path, seed: int, *, asks: bool = False) -> tuple[list[str], list[str]]:
    """Live through a history; return its end, and that of a fresh build in another order."""
    for name in ("lived", "fresh"):
        (folder / name).mkdir(parents=True)
    async with _open(folder / "lived", asks=asks) as context:
        await live(context, seed)
        lived = await ended(context)
    async with _open(folder / "fresh", asks=asks) as context:
        for each in sorted(history(seed)[-1].items(), reverse=True):
            await context.store.commit(Delta(publish=[tale(*each)]))
        await refresh(context)
        return lived, await ended(context)


@pytest.mark.parametrize("asks", [False, True])
async def test_any_history_ends_in_the_hierarchy_of_its_survivors(asks: bool, laws_scale: int, tmp_path: Path) -> None:
    for seed in range(laws_scale):
        lived, fresh = await both(tmp_path / str(seed), seed, asks=asks)
        assert lived == fresh, seed


class Lots:
    """Draws another number each time, whatever it is asked."""

    def __init__(self) -> None:
        self._random = Random("lots")

    def draw(self, *_: str) -> str:
        """Return the digits of a number."""
        return f"{self._random.getrandbits(256):064x}"


async def never(*_: object) -> bool:
    """Say that nothing has changed."""
    return False


FAULTS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "centres are drawn by lot": lambda patch: patch.setattr(vector_clusters, "digest", Lots().draw),
    "what has changed is not looked at": lambda patch: patch.setattr(hierarchy, "_has_changed", never),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_law_fails_where(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    lived, fresh = await both(tmp_path, 0)
    assert lived != fresh
