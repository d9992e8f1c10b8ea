"""Small random worlds, and plain readings of them: what dense references of strategies are computed from."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from quipu.model.cluster import ClusterReport
from quipu.model.delta import DocumentFacts
from quipu.model.graph import ClaimMention
from quipu.model.ids import relation_id
from quipu.ports.store import ReadView, VectorSpace
from quipu.testing.facts import claim
from tests.unit.retrieve.communities import Tree, chunk_of, divide, report, report_on
from tests.unit.retrieve.fakes import Library, page

COLOURS = ("red", "blue", "green", "white")
THINGS = ("gate", "tower", "bridge", "harbour")
QUESTION = "Which red gate and blue tower belong to the white harbour?"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a world says: pages by title with the entities each names, relates and claims; and its communities."""

    pages: tuple[DocumentFacts, ...]
    names: dict[str, tuple[str, ...]]
    pairs: dict[str, tuple[tuple[str, str], ...]]
    tree: Tree
    reports: tuple[ClusterReport, ...]
    claims: dict[str, tuple[ClaimMention, ...]] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        return sorted({key for names in self.names.values() for key in names})

    @property
    def chunk_by_page(self) -> dict[str, str]:
        return dict(zip((each.id for each in self.pages), chunk_of(*self.pages), strict=True))

    def relations(self) -> dict[str, tuple[str, str, int]]:
        """Return each relation by id: its ends, and how many pages state it."""
        found: dict[str, tuple[str, str, int]] = {}
        for pairs in self.pairs.values():
            for pair in pairs:
                left, right = sorted(pair)
                known = found.get(relation_id(left, right), (left, right, 0))
                found[relation_id(left, right)] = (left, right, known[2] + 1)
        return found

    def degrees(self) -> dict[str, int]:
        ends = [end for left, right, _ in self.relations().values() for end in (left, right)]
        return {key: ends.count(key) for key in self.keys}

    def branch(self, key: str) -> list[str]:
        """Return the communities of an entity, coarsest first."""
        found = [cluster for cluster, (_, members) in self.tree.items() if key in members]
        while found and self.tree[found[0]][0]:
            found.insert(0, self.tree[found[0]][0])
        return found

    def level(self, cluster: str) -> int:
        parent = self.tree[cluster][0]
        return self.level(parent) + 1 if parent else 0


def world(seed: int) -> World:
    """Return a world of 16 entities on 9 pages, in a tree of communities of 4 levels; some have no report."""
    chance = random.Random(seed)
    everything = [f"{colour} {thing}" for colour in COLOURS for thing in THINGS]
    names = {f"p{n}": tuple(chance.sample(everything, 4)) for n in range(9)}
    pairs = {title: tuple(chance.sample(list(combinations(named, 2)), 3)) for title, named in names.items()}
    claims = {title: tuple(_claims(random.Random(f"{seed} {title}"), named)) for title, named in names.items()}
    pages = tuple(
        page(
            title,
            f"Of {', of '.join(_name(key) for key in named)}.",
            names={_name(key): "Location" for key in named},
            relations=[(_name(left), _name(right), f"It is {title}.") for left, right in pairs[title]],
            claims=claims[title],
        )
        for title, named in names.items()
    )
    tree = _tree(chance, sorted({key for named in names.values() for key in named}))
    reports = tuple(
        report(
            cluster,
            f"It is about {' and '.join(chance.sample(everything, 2))}.",
            rating=chance.randint(1, 9),
            chunks=chunk_of(*chance.sample(pages, 2)),
        )
        for cluster in tree
        if chance.random() < 0.8
    )
    return World(pages=pages, names=names, pairs=pairs, tree=tree, reports=reports, claims=claims)


def _claims(chance: random.Random, named: Sequence[str]) -> Iterator[ClaimMention]:
    """Yield up to 60 claims, so that of some entities more are made than any strategy takes."""
    for n in range(chance.choice([0, 3, 60])):
        subject, other = chance.sample(named, 2)
        yield claim(subject, f"It is said {n} times.", chance.choice(["", other]), status=chance.choice(["", "false"]))


def _tree(chance: random.Random, keys: Sequence[str]) -> Tree:
    """Return a chain of divisions: at each level half of what is left is divided further."""
    tree: dict[str, tuple[str, Sequence[str]]] = {}
    left, above = list(keys), ""
    chance.shuffle(left)
    for level in range(3):
        half = len(left) // 2
        tree[f"a{level}"] = (above, tuple(left[:half]))
        tree[f"b{level}"] = (above, ())
        left, above = left[half:], f"b{level}"
    tree["a3"] = (above, tuple(left))
    return tree


def _name(key: str) -> str:
    return key.title()


async def settle(library: Library, made: World, *, order: int = 0) -> None:
    """Put a world into a library, its pages in this order."""
    pages = list(made.pages)
    random.Random(order).shuffle(pages)
    for each in pages:
        await library.publish(each)
    await divide(library, made.tree)
    await report_on(library, *made.reports)


async def cosines(
    library: Library, view: ReadView, space: VectorSpace, ids: Sequence[str], text: str
) -> dict[str, float]:
    """Return the cosine of a question with each of these ids."""
    (vector,) = await library.embedder.embed_queries([text])
    return await library.tools.vectors.similarities(view, space, vector, ids)
