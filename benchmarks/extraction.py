"""How much the local extractor finds, of what people labelled and of what GPT-3.5 found, and how fast it is.

Run: python benchmarks/extraction.py

Labels (tests/data/labels): 100 sentences each in English, Russian and Chinese, written and labelled before the rules:
20 each of news, history, science, business and chat. Wanted are the names a careful reader would put into a knowledge
graph: people, bodies, places, works, products, events, laws, and terms of a science; the outermost name, as it stands
in the text, with and without expansion. Not wanted: dates, quantities, adjectives of nation, offices. The rules were
tuned on the first half of each file; the second half is held out. A name counts where its entity key is equal.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput
from quipu.text.names import entity_key

ROOT = Path(__file__).resolve().parents[1]
LABELS = ROOT / "tests/data/labels"
MUSIQUE = ROOT / "../shared/data/musique_train100"
LONG_BYTES = 4_800


@dataclass(frozen=True, slots=True)
class Example:
    """A chunk and the keys of the entities wanted from it."""

    chunk: ChunkInput
    wanted: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Counts over examples; `n_near` are wanted names of which a found one is a part, or the other way round."""

    n_examples: int
    n_wanted: int
    n_found: int
    n_right: int
    n_near: int

    @property
    def precision(self) -> float:
        """Share of found names that are wanted."""
        return self.n_right / self.n_found

    @property
    def recall(self) -> float:
        """Share of wanted names that are found."""
        return self.n_right / self.n_wanted

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.n_right / (self.n_found + self.n_wanted)


def main() -> None:
    """Print every figure."""
    print(f"{'labels':<18}{'sentences':>10}{'precision':>11}{'recall':>8}{'F1':>7}")
    for language in ("en", "ru", "zh"):
        examples = labelled(language)
        for name, part in (("tuned on", examples[:50]), ("held out", examples[50:]), ("all", examples)):
            found = score(part)
            print(
                f"{language + ' ' + name:<18}{found.n_examples:>10}"
                f"{found.precision:>11.3f}{found.recall:>8.3f}{found.f1:>7.3f}"
            )
    if not MUSIQUE.is_dir():
        print(f"musique_train100 is not at {MUSIQUE}: left out")
        return
    examples = recorded()
    found = score(examples)
    print(f"\nGPT-3.5 on musique_train100: recall {found.recall:.3f} of {found.n_wanted} entities by equal key")
    print(f"  and {found.n_near / found.n_wanted:.3f} more as a part of a found name or holding one")
    print(f"  {found.n_found / found.n_examples:.2f} entities a passage, {found.precision:.3f} of them recorded")
    chunks = [example.chunk for example in examples]
    print(
        f"\nspeed: {per_second(chunks):,.0f} passages, {per_second(long_chunks(chunks)):,.0f} long chunks a CPU second"
    )


def labelled(language: str) -> list[Example]:
    """Return the labelled sentences of a language, in the order of the file."""
    return [
        Example(ChunkInput(text=row["text"], title=row.get("title", "")), keys(row["entities"]))
        for row in map(json.loads, lines(LABELS / f"{language}.jsonl"))
    ]


def recorded() -> list[Example]:
    """Return the passages of musique_train100 with the entities GPT-3.5 found in them."""
    wanted = {row["passage_id"]: keys(row["entities"]) for row in map(json.loads, lines(MUSIQUE / "extraction.jsonl"))}
    return [
        Example(ChunkInput(text=row["text"], title=row["title"]), wanted[row["id"]])
        for row in map(json.loads, lines(MUSIQUE / "corpus.jsonl"))
    ]


def score(examples: Sequence[Example]) -> Score:
    """Return how the entities of the extractor compare with the wanted ones."""
    found = [keys(entity.name for entity in extract_chunk(example.chunk).entities) for example in examples]
    pairs = [(example.wanted, names) for example, names in zip(examples, found, strict=True)]
    return Score(
        n_examples=len(pairs),
        n_wanted=sum(len(wanted) for wanted, _ in pairs),
        n_found=sum(len(names) for _, names in pairs),
        n_right=sum(len(wanted & names) for wanted, names in pairs),
        n_near=sum(
            any(key in name or name in key for name in names) for wanted, names in pairs for key in wanted - names
        ),
    )


def long_chunks(chunks: Sequence[ChunkInput]) -> list[ChunkInput]:
    """Return the texts joined and cut to chunks of 1,200 tokens (bytes / 4)."""
    text = "\n\n".join(chunk.text for chunk in chunks)
    return [ChunkInput(text=text[start : start + LONG_BYTES]) for start in range(0, len(text), LONG_BYTES)]


def per_second(chunks: Sequence[ChunkInput]) -> float:
    """Return how many chunks are read in a second of CPU time."""
    extract_chunk(chunks[0])
    start = time.process_time()
    for chunk in chunks:
        extract_chunk(chunk)
    return len(chunks) / (time.process_time() - start)


def keys(names: Iterator[str] | Sequence[str]) -> frozenset[str]:
    """Return the entity keys of names."""
    return frozenset(map(entity_key, names)) - {""}


def lines(path: Path) -> list[str]:
    """Return the lines of a JSON lines file."""
    return path.read_text("utf-8").splitlines()


if __name__ == "__main__":
    main()
