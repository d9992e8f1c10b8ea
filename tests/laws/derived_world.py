"""A world for the laws of derivations: all of them are kept, from the first document on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from quipu.derive.catalog import CATALOG
from quipu.engine import Quipu
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.document import SourceDocument
from quipu.retrieve import STRATEGIES
from tests.acceptance.corpora import CHINESE, RUSSIAN
from tests.laws.world import document

DERIVATIONS = tuple(each.name for each in CATALOG)
QUESTIONS = (
    "Who travelled with Marco Polo to the court of Kublai Khan?",
    "Кто нашёл берестяные грамоты в Новгороде, и где было 郑和?",
)
NAMES = tuple(f"{letter}.md" for letter in "abcdef")


@dataclass(frozen=True, slots=True)
class Step:
    """Some documents are handed in together, then some are removed."""

    added: Sequence[SourceDocument]
    removed: Sequence[str]


def history(seed: int) -> list[Step]:
    """Return some steps over a few documents in several versions; at the end three or more are left."""
    random = Random(f"derived {seed}")
    steps = [_step(random, random.randint(1, 4)) for _ in range(random.randint(2, 4))]
    return [*steps, Step([story(name, random.randint(0, 3)) for name in random.sample(NAMES, 3)], ())]


def _step(random: Random, n: int) -> Step:
    added = [story(name, random.randint(0, 3)) for name in random.sample(NAMES, n)]
    return Step(added, random.sample(NAMES, random.randint(0, 2)))


def story(name: str, version: int) -> SourceDocument:
    """Return a version of a document: texts in three scripts, some of them also in other documents."""
    random = Random(f"{name} {version}")
    texts = random.sample([*RUSSIAN.texts.values(), *CHINESE.texts.values()], 2)
    known = document(name, version)
    return replace(known, content="\n\n".join([*texts, known.content.decode()]).encode())


async def keep_all(kb: Quipu) -> None:
    """Make every derivation, so that it is kept from then on."""
    report = await kb.refresh(DERIVATIONS)
    assert report.is_complete, report


async def live(kb: Quipu, steps: Sequence[Step]) -> list[SourceDocument]:
    """Live through a history; return the documents that are left."""
    alive: dict[str, SourceDocument] = {}
    for step in steps:
        await kb.add(*step.added)
        alive |= {source.id: source for source in step.added}
        gone = [name for name in step.removed if name in alive]
        await kb.remove(gone)
        for name in gone:
            del alive[name]
    return list(alive.values())


async def canonical_state(kb: Quipu) -> object:
    """Return what no history may show: faults, the dump, and the evidence of every strategy."""
    return await kb.verify(), [line async for line in kb.dump()], await evidence(kb, tuple(STRATEGIES))


async def evidence(kb: Quipu, strategies: Sequence[str], **options: Any) -> list[str]:
    """Return what these strategies find, with scores, reasons and notes."""
    found = [
        (name, question, await kb.retrieve(question, strategy=name, **options))
        for name in strategies
        for question in QUESTIONS
    ]
    return [f"{name} {question} {each}" for name, question, each in found]


async def told_of(kb: Quipu, hierarchy: Hierarchy) -> tuple[list[Cluster], list[ClusterReport]]:
    """Return all clusters of a hierarchy, and what is written of them."""
    async with kb._store.view() as view:
        clusters = await view.clusters(hierarchy)
        return clusters, await view.cluster_reports([each.id for each in clusters])
