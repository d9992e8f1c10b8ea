"""Duplicates: precision and recall on labelled pairs of names, beside the rules of other systems; and time at scale.

    python -m benchmarks.duplicates [--entities N]

`pairs.tsv` holds pairs of names from three corpora (technical pages and novels read by rules, questions of MuSiQue read
by GPT-3.5, a novel read by GPT-4o), labelled by hand. They are a sample of what any of the methods below proposes, of
each reason about as many, and a few that none does; pairs that stayed doubtful are left out. So the figures compare the
methods, and say nothing of how many duplicates an index has. All methods that compare vectors use the local embedder.

The second table is CPU time of this process: all candidates of N entities, and again after one more document. A row of
that table is saved in `benchmarks/results/duplicates.md` with the first one.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

import quipu
from quipu.derive.duplicate_index import DuplicateIndex
from quipu.derive.duplicates import MIN_COSINE, PERSON, are_compatible, likeness_of_cosine
from quipu.model.delta import DocumentFacts
from quipu.providers.local import WordLlamaEmbedder
from quipu.testing.contract.steps import publish
from quipu.testing.facts import PassageSpec, document, entity, passage, relation
from quipu.text.names import entity_key

PAIRS = Path(__file__).with_name("pairs.tsv")
N_PER_PASSAGE, N_PER_DOCUMENT = 20, 10  # entities of a passage, passages of a document
N_NEW = 20  # entities of the document that comes last


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two names with their types ("" where unknown), and whether they stand for one thing."""

    corpus: str
    names: tuple[str, str]
    types: tuple[str, str]
    is_same: bool


Scorer = Callable[[str, str, str, str], float]  # names and types of a pair → score
Vectors = Mapping[str, npt.NDArray[np.float32]]


def read_pairs() -> list[LabelledPair]:
    """Return the labelled pairs."""
    with PAIRS.open(encoding="utf-8") as file:
        return [
            LabelledPair(
                corpus=row["corpus"],
                names=(row["first"], row["second"]),
                types=(row["first_type"] or "Unknown", row["second_type"] or "Unknown"),
                is_same=row["label"] == "same",
            )
            for row in DictReader(file, delimiter="\t")
        ]


async def compare_methods() -> Iterator[str]:
    """Return the rows of the table of precision and recall."""
    pairs = read_pairs()
    names = sorted({name for pair in pairs for name in pair.names})
    vectors = dict(zip(names, np.asarray(await WordLlamaEmbedder().embed(names), dtype=np.float32), strict=True))
    by_names, by_vectors = quipu_scorer(names), quipu_scorer(names, vectors)
    methods: dict[str, Callable[[LabelledPair], bool]] = {
        "Quipu, score 0.6 (the default of `quipu resolve`)": lambda pair: by_names(*pair.names, *pair.types) >= 0.6,
        "Quipu, score 0.6, with vectors": lambda pair: by_vectors(*pair.names, *pair.types) >= 0.6,
        "Quipu, score 0.9": lambda pair: by_names(*pair.names, *pair.types) >= 0.9,
        "Quipu, score 0.3": lambda pair: by_names(*pair.names, *pair.types) >= 0.3,
        "normal form of Quipu (what is one entity from the start)": lambda pair: (
            len(set(map(entity_key, pair.names))) == 1
        ),
        "normaliser of EdgeQuake": lambda pair: len(set(map(edgequake_form, pair.names))) == 1,
        "synonyms of HippoRAG 2 (cosine 0.8)": lambda pair: cosine(vectors, *pair.names) >= 0.8,
        "identity edges of Fast GraphRAG (cosine 0.8, two of each)": nearest_two(vectors),
        "links of MiniRAG by name (cosine 0.2)": lambda pair: cosine(vectors, *pair.names) >= 0.2,
    }
    n_same = sum(pair.is_same for pair in pairs)
    rows = [f"{len(pairs)} pairs, {n_same} of which are one thing.\n"]
    rows += ["| method | proposed | right | precision, % | recall, % |", "|---|---|---|---|---|"]
    for name, proposes in methods.items():
        proposed = [pair.is_same for pair in pairs if proposes(pair)]
        precision = f"{100 * sum(proposed) / len(proposed):.0f}" if proposed else "–"
        rows.append(
            f"| {name} | {len(proposed)} | {sum(proposed)} | {precision} | {100 * sum(proposed) / n_same:.0f} |"
        )
    return iter(rows)


def quipu_scorer(names: Sequence[str], vectors: Vectors | None = None) -> Scorer:
    """Return how Quipu scores pairs of these names; without a graph there are no shared neighbours."""
    index = DuplicateIndex(dict(enumerate(sorted({entity_key(name) for name in names}))))

    def score(first: str, second: str, first_type: str, second_type: str) -> float:
        numbers = [index.number(entity_key(name)) or 0 for name in (first, second)]
        if numbers[0] == numbers[1]:
            return 1.0
        if not are_compatible(first_type, second_type):
            return 0.0
        likeness = index.likeness_by_pair.get((min(numbers), max(numbers)))
        scores = [0.0]
        if likeness is not None:
            scores.append(likeness.of_persons if PERSON in (first_type, second_type) else likeness.score)
        if vectors is not None and cosine(vectors, first, second) >= MIN_COSINE and index.may_be_one(*numbers):
            scores.append(likeness_of_cosine(cosine(vectors, first, second)).score)
        return max(scores)

    return score


def edgequake_form(name: str) -> str:
    """Return a name as EdgeQuake normalises it: capitals, no signs, words joined by underscores (its `merger.rs`)."""
    kept_signs = "".join(sign for sign in name.strip().upper() if sign.isalnum() or sign == " ")
    return "_".join(kept_signs.split())


def cosine(vectors: Vectors, first: str, second: str) -> float:
    """Return the cosine of two names."""
    return float(vectors[first] @ vectors[second])


def nearest_two(vectors: Vectors) -> Callable[[LabelledPair], bool]:
    """Return whether a name is among the two nearest of the other, with a cosine of 0.8 or more."""
    names = list(vectors)
    matrix = np.stack([vectors[name] for name in names])
    similarities = matrix @ matrix.T
    np.fill_diagonal(similarities, -1)
    nearest = {name: {names[i] for i in np.argsort(-row)[:2]} for name, row in zip(names, similarities, strict=True)}

    def proposes(pair: LabelledPair) -> bool:
        first, second = pair.names
        is_near = second in nearest[first] or first in nearest[second]
        return is_near and cosine(vectors, first, second) >= 0.8

    return proposes


async def measure_time(n_entities: int) -> Iterator[str]:
    """Return the rows of the table of times."""
    rows = ["| entities | pairs | all candidates, s of CPU | after one more document, ms of CPU |", "|---|---|---|---|"]
    random = Random(1)
    names = _names(n_entities, random)
    with tempfile.TemporaryDirectory() as folder:
        async with quipu.open(Path(folder) / "kb") as kb:
            size = N_PER_PASSAGE * N_PER_DOCUMENT
            for start in range(0, len(names), 50 * size):
                block = names[start : start + 50 * size]
                documents = [_document(f"{start + i}", block[i : i + size]) for i in range(0, len(block), size)]
                await publish(kb._components.store, *documents)
            began = time.process_time()
            pairs = await kb.edits.duplicates(above=0.3, k=10_000)
            all_s = time.process_time() - began
            later_ms: list[float] = []
            for n in range(5):
                await publish(kb._components.store, _document(f"new {n}", _names(N_NEW, random)))
                began = time.process_time()
                await kb.edits.duplicates(above=0.6, k=50)
                later_ms.append(1_000 * (time.process_time() - began))
            n_all = (await kb.status()).n_entities
    rows.append(f"| {n_all:,} | {len(pairs):,} | {all_s:.1f} | {sorted(later_ms)[2]:.0f} |")
    return iter(rows)


def _names(n: int, random: Random) -> list[str]:
    """Return names as corpora have them: of people, with titles and initials; of companies; and of things."""
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ol", "ur")]

    def word() -> str:
        return "".join(random.choices(syllables, k=random.choice((2, 2, 3)))).capitalize()

    words = [word() for _ in range(20_000)]
    shapes: tuple[Callable[[str, str], str], ...] = (
        lambda a, b: f"{a} {b}",
        lambda a, b: f"Dr. {a} {b}",
        lambda a, b: f"{a[0]}. {b}",
        lambda a, b: f"{a} {random.choice(words)} {b}",
        lambda a, b: f"{a}{b} Ltd.",
        lambda a, b: f"{a} {b}s",
        lambda a, b: a,
    )
    return [random.choice(shapes)(random.choice(words), random.choice(words)) for _ in range(n)]


def _document(name: str, names: Sequence[str]) -> DocumentFacts:
    blocks = [names[start : start + N_PER_PASSAGE] for start in range(0, len(names), N_PER_PASSAGE)]
    return document(name, *(_passage(f"Part {number} of {name}.", block) for number, block in enumerate(blocks)))


def _passage(text: str, names: Sequence[str]) -> PassageSpec:
    """Return a passage that mentions names and relates each to the next."""
    by_key = {entity_key(name): name for name in names}
    pairs = zip(by_key.values(), list(by_key.values())[1:], strict=False)
    entities = (entity(name, "Person") for name in by_key.values())
    return passage(text, *entities, *(relation(one, other, "They met.") for one, other in pairs))


async def main(n_entities: int) -> None:
    """Print both tables."""
    print("\n".join(await compare_methods()))
    print()
    print("\n".join(await measure_time(n_entities)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=100_000)
    asyncio.run(main(parser.parse_args().entities))
