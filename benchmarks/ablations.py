"""Measure what parts of a method are worth: `python benchmarks/ablations.py [--set NAME …] [--embedder NAME …]`.

Each line is one strategy with one option, one constant of its module, or one step, set otherwise. Of the facts near the
question `hippo` keeps those about what it names; "the nearest n" is HippoRAG 2 without its recognition memory, "the
nearest n of use" with one that never errs: it keeps those that a passage of the gold states, and where there are none
the nearest passages stand in. R@20 is what a reranker has to work with.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that it runs as a file, too

from benchmarks.reference.scores import Score, measure, read_recorded  # noqa: E402
from benchmarks.retrieval import CACHE, DATA  # noqa: E402
from quipu.bench.datasets import Dataset, read_dataset  # noqa: E402
from quipu.errors import QuipuError  # noqa: E402
from quipu.model.evidence import Scored  # noqa: E402
from quipu.model.query import Query  # noqa: E402
from quipu.ports.store import OccurrenceKind, ReadView  # noqa: E402
from quipu.retrieve.hippo import FilteredFacts  # noqa: E402
from quipu.retrieve.strategy import Model  # noqa: E402
from quipu.settings.sources import ENVIRONMENT_PREFIX  # noqa: E402

DEFAULT_SET = "musique_train100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A strategy, its options and the constants of its module that are set otherwise, and how `hippo` chooses facts.

    The first `n_facts` are kept, where given; with `is_perfect` those of them that are stated by the gold.
    """

    strategy: str
    options: Mapping[str, float] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    n_facts: int = 0
    is_perfect: bool = False

    def __str__(self) -> str:
        chosen = f"the nearest {self.n_facts}{' of use' if self.is_perfect else ''}" if self.n_facts else ""
        values = {**self.options, **self.constants}
        return ", ".join(
            filter(None, [self.strategy, chosen, *(f"{name} {value:g}" for name, value in values.items())])
        )


VARIANTS = (
    Variant(strategy="naive"),
    Variant(strategy="hippo"),
    *(Variant(strategy="hippo", n_facts=n) for n in (2, 5, 10)),
    *(Variant(strategy="hippo", n_facts=n, is_perfect=True) for n in (5, 20)),
    *(Variant(strategy="hippo", options={"hippo_passage_weight": weight}) for weight in (0.0, 1.0)),
    Variant(strategy="path"),
    *(Variant(strategy="path", constants={"N_PATHS": n}) for n in (10, 100)),
    Variant(strategy="path", constants={"BOOST": 1.0}),
    Variant(strategy="community_local"),
    Variant(strategy="community_local", options={"community_entities": 20}),
    Variant(strategy="bridge"),
    Variant(strategy="lca"),
    *(Variant(strategy="lca", constants={"MAX_SEEDS": n}) for n in (5, 20)),
    Variant(strategy="lca", constants={"DECAY": 0.0}),
    Variant(strategy="drift"),
)


def main() -> int:
    """Print a line for each variant, set and embedder; return 1 where a set named does not exist."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets (default: QUIPU_DATA)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the indexes, kept between runs")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME", help=f"default: {DEFAULT_SET}")
    parser.add_argument("--embedder", action="append", dest="embedders", metavar="NAME", help="default: wordllama")
    known = list(dict.fromkeys(variant.strategy for variant in VARIANTS))
    parser.add_argument("--strategy", action="append", dest="strategies", choices=known, help="default: all")
    given = parser.parse_args()
    if not given.sets and not (given.data / DEFAULT_SET).is_dir():
        print(f"{DEFAULT_SET} is not in the folder of data sets: left out. Name it: --data DIR or QUIPU_DATA.")
        return 0
    try:
        for embedder in given.embedders or ["wordllama"]:
            for name in given.sets or [DEFAULT_SET]:
                _compare(name, embedder, given)
    except QuipuError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _compare(name: str, embedder: str, given: argparse.Namespace) -> None:
    dataset = read_dataset((given.data / name).resolve())
    recorded = read_recorded(given.data / name)
    for extractor in (None, recorded) if recorded else (None,):
        print(f"\n{name}, {embedder}, read by {extractor.identity if extractor else 'local rules'}", flush=True)
        for variant in VARIANTS:
            if given.strategies and variant.strategy not in given.strategies:
                continue
            with _changed(variant, dataset):
                work = measure(dataset, given.cache, [variant.strategy], embedder=embedder, extractor=extractor)
                _, score = asyncio.run(work).scores
            print(f"  {variant!s:<40}{_told(score)}", flush=True)


def _told(score: Score) -> str:
    recalls = (f"R@{k} {mean.value:5.1f}" for k, mean in score.recall.items())
    return "  ".join([*recalls, f"All@8 {score.all_found.value:5.1f}"])


@contextmanager
def _changed(variant: Variant, dataset: Dataset) -> Iterator[None]:
    """Set what a variant has otherwise, options by the environment, and afterwards back."""
    module = import_module(f"quipu.retrieve.{variant.strategy}")
    changes: dict[str, Any] = dict(variant.constants)
    if variant.n_facts:
        changes["filter_facts"] = _filter(variant, dataset)
    before = {name: getattr(module, name) for name in changes}
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": f"{value:g}" for name, value in variant.options.items()}
    environment = dict(os.environ)
    try:
        os.environ.update(variables)
        for name, value in changes.items():
            setattr(module, name, type(before[name])(value) if isinstance(value, float) else value)
        yield
    finally:
        for name in variables:
            os.environ.pop(name)
        os.environ.update(environment)
        for name, value in before.items():
            setattr(module, name, value)


def _filter(variant: Variant, dataset: Dataset) -> Any:
    gold = {question.text: frozenset().union(*question.gold) for question in dataset.questions}

    async def filter_facts(
        facts: Sequence[Scored], query: Query, view: ReadView, _model: Model | None
    ) -> FilteredFacts:
        facts = facts[: variant.n_facts]
        if not variant.is_perfect:
            return list(facts), ()
        stated = await view.occurrences(OccurrenceKind.RELATION, [fact.id for fact in facts])
        chunks = await view.chunks(sorted({chunk for each in stated.values() for chunk in each}))
        good = {chunk.id for chunk in chunks if chunk.document_id in gold[query.text]}
        return [fact for fact in facts if good.intersection(stated.get(fact.id, ()))], ()

    return filter_facts


if __name__ == "__main__":
    raise SystemExit(main())
