"""Workload: texts, and what a model would make of them, at almost no cost; needs NumPy alone.

Both sides of the comparison import this module, so that they read the same texts and are given the same replies and
vectors. A reply depends on the text of a chunk alone.

A token is a word with the space after it. A document of ten chunks has 11,000 tokens: ten windows of 1,200 that overlap
by 100. Each paragraph is the stride of one window and names eight entities, none in the part that two windows share; so
windows, and paragraphs on their own, name the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

WINDOW, OVERLAP = 1_200, 100  # tokens
STRIDE = WINDOW - OVERLAP
CHUNKS_PER_DOCUMENT = 10
ENTITIES_PER_CHUNK = 8
WORDS_PER_SENTENCE = 20
N_NAMES, N_WORDS = 20_000, 30_000
N_QUESTIONS = 50
N_ADDED = 10  # documents added one by one, the first to warm up
DIMENSION = 384
ENTITY_TYPE = "Person"
KEYWORDS = ("acquaintance",)
THEMES = ("people who meet",)

# The 100 tokens that two windows share are the first five sentences of a paragraph: no name stands there.
_FIRST_NAMED, _NAMED_EVERY, _NAME_AT = 5, 6, 8
_NAME = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
_TOKEN = re.compile(r"\s*\S+\s*")
_TABLE_ROWS = 4_096
_SHARED = 0.7
_SINGLE = 1_000_000  # documents beside the corpus are numbered from a multiple of this


@dataclass(frozen=True, slots=True)
class Entity:
    """What the model says about one name of a chunk."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Relation:
    """What the model says about two names of a chunk."""

    source: str
    target: str
    description: str


def entities(chunk: str) -> list[Entity]:
    """Return the names of a chunk in order, each described by the sentence it stands in."""
    return [Entity(match.group(), _sentence(chunk, match)) for match in _NAME.finditer(chunk)]


def relations(found: Sequence[Entity]) -> list[Relation]:
    """Return a ring: each entity related to the next, the last to the first."""
    following = [*found[1:], *found[:1]]
    return [
        Relation(a.name, b.name, f"{a.name} met {b.name}: {' '.join(b.description.split()[:6]).lower()}.")
        for a, b in zip(found, following, strict=True)
        if a.name != b.name
    ]


def names(text: str) -> list[str]:
    """Return the names in a text, in order."""
    return _NAME.findall(text)


def tokens(text: str) -> list[str]:
    """Return the tokens of a text; joined, they are the text."""
    return _TOKEN.findall(text)


class Embedding:
    """Vectors as a bag of words: the mean of a fixed random vector for each, and a part that all texts share.

    The shared part lifts every cosine above 0.2, as it is with real models, so that contexts are full.
    """

    def __init__(self) -> None:
        self._table, shared = _random_vectors()
        self._shared = shared * np.float32(_SHARED / np.linalg.norm(shared))
        self._row_by_word: dict[str, int] = {}

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, [n, DIMENSION]; each depends on its text alone, to the bit."""
        found = np.empty((len(texts), DIMENSION), dtype=np.float32)
        for index, text in enumerate(texts):
            total = self._table[[self._row(word) for word in dict.fromkeys(text.split())]].sum(axis=0)
            vector = total / max(np.linalg.norm(total), np.float32(1e-6)) + self._shared
            found[index] = vector / np.linalg.norm(vector)
        return found

    def _row(self, word: str) -> int:
        row = self._row_by_word.get(word)
        if row is None:
            row = self._row_by_word[word] = crc32(word.encode()) % _TABLE_ROWS
        return row


class Texts:
    """Draws names and filler words by Zipf's law in Mandelbrot's form, 1 / (rank + 2.7), from a fixed seed.

    A document depends on the seed and its number, not on the documents made before it.
    """

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        random = np.random.default_rng(seed)
        syllables = [a + b + c for a in "bdgklmnprstvz" for b in "aeiou" for c in "nlrsm"]
        parts = [(first + second).capitalize() for first in syllables[::5] for second in syllables[::11]]
        pairs = random.permutation(len(parts) ** 2)[:N_NAMES]
        self._names = [f"{parts[pair // len(parts)]} {parts[pair % len(parts)]}" for pair in pairs.tolist()]
        self._words = np.array(_words(syllables, random), dtype=object)
        self._name_shares, self._word_shares = _zipf(N_NAMES), _zipf(N_WORDS)

    def document(self, number: int, n_chunks: int = CHUNKS_PER_DOCUMENT) -> str:
        """Return a document of this many chunks."""
        random = np.random.default_rng((self._seed, number))
        return "\n\n".join(self._paragraph(random) for _ in range(n_chunks)) + "\n"

    def questions(self, n: int = N_QUESTIONS) -> list[str]:
        """Return questions that name one to three entities of the first twenty documents."""
        random = np.random.default_rng((self._seed, n))
        known = [names(self.document(number)) for number in range(20)]
        asked: dict[str, None] = {}
        while len(asked) < n:
            document = known[int(random.integers(len(known)))]
            first, second, third = (document[index] for index in random.choice(len(document), 3, replace=False))
            forms = (
                f"What is known about {first}?",
                f"How did {first} come to meet {second}?",
                f"What do {first}, {second} and {third} have in common?",
            )
            asked.setdefault(forms[len(asked) % 3])
        return list(asked)

    def _paragraph(self, random: np.random.Generator) -> str:
        words = self._words[_ranks(random, self._word_shares, STRIDE)].reshape(-1, WORDS_PER_SENTENCE)
        for position, name in enumerate(self._distinct_names(random)):
            sentence = words[_FIRST_NAMED + position * _NAMED_EVERY]
            sentence[_NAME_AT], sentence[_NAME_AT + 1] = name.split()
        return " ".join(f"{sentence[0].capitalize()} {' '.join(sentence[1:])}." for sentence in words.tolist())

    def _distinct_names(self, random: np.random.Generator) -> list[str]:
        ranks = dict.fromkeys(_ranks(random, self._name_shares, 8 * ENTITIES_PER_CHUNK).tolist())
        return [self._names[rank] for rank in list(ranks)[:ENTITIES_PER_CHUNK]]


def document_paths(folder: Path, n_chunks: int) -> list[Path]:
    """Return where the documents of an index of `n_chunks` are."""
    return [_path(folder, "documents", number) for number in range(n_chunks // CHUNKS_PER_DOCUMENT)]


def addition_paths(folder: Path, n: int, n_chunks: int) -> list[Path]:
    """Return where `n` more documents of `n_chunks` each are, which are in no index."""
    return [_path(folder, f"additions-{n_chunks}", n_chunks * _SINGLE + number) for number in range(n)]


def write(paths: Sequence[Path], n_chunks: int, texts: Texts) -> None:
    """Write those of the documents that are not there, of `n_chunks` each."""
    for path in paths:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".draft")
            draft.write_text(texts.document(int(path.stem), n_chunks), "utf-8")
            draft.rename(path)


def _path(folder: Path, kind: str, number: int) -> Path:
    return folder / kind / f"{number:08}.txt"


def _sentence(text: str, match: re.Match[str]) -> str:
    end = text.find(".", match.end())
    return text[text.rfind(".", 0, match.start()) + 1 : end + 1 if end >= 0 else len(text)].strip()


def _words(syllables: Sequence[str], random: np.random.Generator) -> list[str]:
    """Return filler words, the frequent ones short: 6.1 characters a token with its space, as measured for English."""
    lengths = [1 if rank < 300 else 2 if rank < 4_000 else 3 for rank in range(N_WORDS)]
    return ["".join(syllables[index] for index in random.integers(len(syllables), size=length)) for length in lengths]


@cache
def _random_vectors() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return a vector for each row of the table, and the shared one; drawn once a process."""
    random = np.random.default_rng(DIMENSION)
    table = random.standard_normal((_TABLE_ROWS, DIMENSION)).astype(np.float32)
    return table, random.standard_normal(DIMENSION).astype(np.float32)


def _zipf(population: int) -> npt.NDArray[np.float64]:
    """Return for each rank the share of all draws that fall on it or on those before it."""
    weights = 1 / (np.arange(population, dtype=np.float64) + 3.7)
    return np.cumsum(weights / weights.sum())


def _ranks(random: np.random.Generator, shares: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.int64]:
    return np.minimum(np.searchsorted(shares, random.random(n)), len(shares) - 1)
