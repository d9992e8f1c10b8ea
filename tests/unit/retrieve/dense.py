"""A small random world as full matrices, read plainly: what the references of walks and paths are computed from."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.derive import names, sentences
from quipu.derive.derivation import DerivationContext
from quipu.model.chat import ChatRequest
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.evidence import Evidence
from quipu.model.ids import relation_id
from quipu.model.query import Filter, Query
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.retrieve.strategy import Retrieve, Tools
from quipu.testing.contract.steps import synonyms as synonyms_of
from quipu.text.names import entity_key
from tests.unit.retrieve.fakes import Library, page

Matrix = npt.NDArray[np.float64]

QUESTION = "Which river did Amber Falk and the Cedar Guild follow to the old mill of Birch?"
NAMES = {
    "Amber Falk": "Person",
    "Amber Falk Senior Senior": "Person",
    "Cedar Guild": "Organization",
    "Cedar Guild House Cedar": "Organization",
    "Birch": "Location",
    "Dorn": "Location",
    "Elm Fair": "Event",
    "Fenwick Hale": "Person",
    "Gorse": "Location",
    "Heath Trial": "Event",
    "Iris Knoll": "Person",
    "Juniper Bank": "Organization",
}
FILLERS = ("followed the river", "left the old mill", "sold grain", "which nobody saw", "met at night", "did the rest")


def world(seed: int) -> list[DocumentFacts]:
    """Return eight pages of three sentences each, with names, related pairs and words of the question in some."""
    chance = random.Random(seed)
    pages = []
    for number in range(8):
        named = [chance.sample(sorted(NAMES), chance.randint(1, 3)) for _ in range(3)]
        text = " ".join(f"{' and '.join(each)} {chance.choice(FILLERS)}." for each in named)
        every = sorted({name for each in named for name in each})
        pairs = chance.sample(list(combinations(every, 2)), min(3, len(every) * (len(every) - 1) // 2))
        described = [(one, other, f"{one} {chance.choice(FILLERS)}.") for one, other in pairs]
        pages.append(page(f"p{number}", text, names={name: NAMES[name] for name in every}, relations=described))
    return pages


def library_in(folder: Path) -> Library:
    """Return a library in a new folder."""
    folder.mkdir()
    return Library(folder)


async def derive(library: Library) -> None:
    """Make what the strategies under test need."""
    context = DerivationContext(
        store=library._store,
        vectors=library.tools.vectors,
        embedder=library.embedder,
        topology=library.tools.topology,
        tokenizer=library.tools.tokenizer,
    )
    for derivation in (names.NAME_VECTORS, names.SYNONYM_PAIRS, sentences.DERIVATION):
        await derivation.refresh(context, False)
    library.embedder.calls.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """What a view holds, entities by key and chunks by id, in their order."""

    keys: list[str]
    chunks: list[str]
    texts: list[str]
    types: list[str]
    appearances: Matrix  # [entities, chunks]
    mentions: Matrix  # of relations, [entities, entities]
    weights: Matrix
    synonyms: Matrix
    stated: Mapping[str, Mapping[str, int]]  # chunks of relations

    def place(self, key: str) -> int:
        return self.keys.index(key)


async def dense(view: ReadView) -> Dense:
    """Read everything of a view."""
    lines = [json.loads(line) async for line in view.dump()]
    every_key = sorted(line["key"] for line in lines if line["kind"] == "entity")
    entities = sorted(await view.entities(every_key), key=lambda each: each.key)
    keys = [each.key for each in entities]
    chunks = sorted(await view.chunks([line["id"] for line in lines if line["kind"] == "chunk"]), key=lambda c: c.id)
    ids = [chunk.id for chunk in chunks]
    place, at = {key: n for n, key in enumerate(keys)}, {chunk: n for n, chunk in enumerate(ids)}
    appearances = np.zeros((len(keys), len(ids)))
    for key, counts in (await view.occurrences(OccurrenceKind.ENTITY, keys, 10_000)).items():
        for chunk, n in counts.items():
            appearances[place[key], at[chunk]] = n
    mentions, weights = np.zeros((len(keys), len(keys))), np.zeros((len(keys), len(keys)))
    related = await view.relations(entities=keys)
    for each in related:
        one, other = place[each.source], place[each.target]
        mentions[one, other] = mentions[other, one] = each.n_mentions
        weights[one, other] = weights[other, one] = each.weight
    alike = np.zeros((len(keys), len(keys)))
    for key, found in (await synonyms_of(view, keys)).items():
        for other_key, cosine in found:
            alike[place[key], place[other_key]] = cosine
    return Dense(
        keys=keys,
        chunks=ids,
        texts=[chunk.text for chunk in chunks],
        types=[each.type for each in entities],
        appearances=appearances,
        mentions=mentions,
        weights=weights,
        synonyms=alike,
        stated=await view.occurrences(OccurrenceKind.RELATION, [each.id for each in related]),
    )


async def cosines(view: ReadView, tools: Tools, space: VectorSpace, text: str, ids: Sequence[str]) -> Matrix:
    """Return the cosine of a text with each of these ids, from the rows of the store; nan where there is none."""
    (query,) = await tools.embedder.embed_queries([text])
    block, rows = await view.vectors(space), await view.numbers(space, ids)
    scores = dict(zip(block.rows.tolist(), block.vectors.astype(np.float64) @ query.astype(np.float64), strict=True))
    return np.array([round(float(scores[rows[each]]), 6) if each in rows else np.nan for each in ids])


def scaled(values: Matrix) -> Matrix:
    """Return values as shares of their span."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    span = known.max() - known.min()
    return np.nan_to_num((values - known.min()) / span if span else np.where(np.isnan(values), np.nan, 1.0))


def page_rank(links: Matrix, reset: Matrix, damping: float) -> Matrix:
    """Return r = d·M·r + (1 - d)·p by solving it; what has no link keeps its own."""
    p = reset / reset.sum()
    degrees = links.sum(axis=0)
    m = links / np.where(degrees > 0, degrees, 1)
    r: Matrix = np.linalg.solve(np.eye(len(p)) - damping * m, (1 - damping) * p)
    return np.where(degrees > 0, r, p)


def best(scores: Mapping[str, float], k: int) -> list[str]:
    """Return the k ids with the highest scores above 0, equal ones by id."""
    rounded = {each: round(score, 6) for each, score in scores.items()}
    return sorted((each for each in rounded if rounded[each] > 0), key=lambda each: (-rounded[each], each))[:k]


def relations_of(found: Dense) -> list[str]:
    """Return the ids of all relations."""
    pairs = zip(*np.nonzero(found.mentions), strict=True)
    return sorted({relation_id(found.keys[int(one)], found.keys[int(other)]) for one, other in pairs})


async def found_in_order(retrieve: Retrieve, query: Query, folder: Path, seed: int) -> Evidence:
    """Return what a strategy finds in a world published in another order, in parts, with a page that goes again."""
    library = library_in(folder)
    await library.open()
    pages = world(5)
    random.Random(seed).shuffle(pages)
    await library.publish(*pages[:3], page("gone", "Amber Falk left.", names={"Amber Falk": "Person"}))
    await derive(library)
    await library.commit(Delta(remove=["gone"]))
    for each in pages[3:]:
        await library.publish(each)
    await derive(library)
    async with library.view() as view:
        found = await retrieve(query, view, library.tools)
    await library.close()
    return found


async def filtered_and_alone(retrieve: Retrieve, query: Query, folder: Path) -> tuple[Evidence, Evidence, set[str]]:
    """Return what a strategy finds of the first pages of a world: by a filter, and where there are no others.

    The third are the chunks of these pages.
    """
    pages = world(3)
    found: list[Evidence] = []
    few = Filter(documents=tuple(each.id for each in pages[:5]))
    for name, published, allowed in (("all", pages, few), ("alone", pages[:5], Filter())):
        library = library_in(folder / name)
        await library.open()
        await library.publish(*published)
        await derive(library)
        async with library.view(allowed) as view:
            found.append(await retrieve(query, view, library.tools))
        await library.close()
    filtered, alone = found
    return filtered, alone, {facts.chunk.id for each in pages[:5] for facts in each.chunks}


class Replies:
    """A model that gives the replies it was made with, one a request, and remembers what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.requests: list[ChatRequest] = []
        self._replies = list(replies)

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        self.requests += requests
        return [self._replies.pop(0) for _ in requests]


def asked_with(tools: Tools, *replies: str) -> tuple[Tools, Replies]:
    """Return the tools with such a model, and it."""
    model = Replies(*replies)
    return replace(tools, model=model), model


def key_of(name: str) -> str:
    """Return the key of a name of this world."""
    return entity_key(name)
