"""Documents about the people of towns, whose relations make communities, for the tests of this folder."""

from random import Random

from quipu.derive.derivation import DerivationContext
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.delta import DocumentFacts
from quipu.model.query import Filter
from quipu.testing.facts import PassageSpec, document, entity, passage, relation

TOWNS = ("Acre", "Bari", "Cori", "Deva")


def chronicle(name: str, town: str, seed: int, *, n: int = 6, people: int = 14) -> DocumentFacts:
    """Return a document of `n` passages, each about some people of a town and how they know each other."""
    random = Random(f"{name} {seed}")
    return document(name, *(_passage(name, town, random, number, people) for number in range(n)), title=name.title())


def _passage(name: str, town: str, random: Random, number: int, people: int) -> PassageSpec:
    chosen = [f"{town} {person}" for person in random.sample(range(people), 4)]
    sentences = [f"{chosen[0]} met {other} in year {number} of {name}." for other in chosen[1:]]
    said = [entity(each, "Person", f"{each} is told of in {name}.") for each in chosen]
    related = [relation(chosen[0], other, f"{chosen[0]} met {other} in {name}.") for other in chosen[1:]]
    return passage(" ".join(sentences), *said, *related)


def shelf(n: int = 8, seed: int = 1) -> list[DocumentFacts]:
    """Return `n` documents, about one town after the other."""
    return [chronicle(f"book{number}", TOWNS[number % len(TOWNS)], seed) for number in range(n)]


async def communities(context: DerivationContext, allowed: Filter | None = None) -> dict[str, Cluster]:
    """Return all communities, by id."""
    async with context.store.view(allowed) as view:
        return {each.id: each for each in await view.clusters(Hierarchy.COMMUNITIES)}


async def written(context: DerivationContext, allowed: Filter | None = None) -> dict[str, ClusterReport]:
    """Return all reports that are shown, by community."""
    async with context.store.view(allowed) as view:
        ids = [each.id for each in await view.clusters(Hierarchy.COMMUNITIES)]
        return {each.cluster: each for each in await view.cluster_reports(ids)}
