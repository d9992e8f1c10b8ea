"""Scores of answers: does the text a person sees hold the gold, and what was refused."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.answers.questions import KINDS, LANGUAGES, Question

N_RESAMPLES = 2000
STAGES = ("shown", "cut", "other block", "other passage", "refused", "not retrieved")
HEADER = f"{'':22}   n  gold           top1 top5 cited chars refU refA   CPU s"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One answer: the text shown, the documents cited, the passages as ranked, and whether it was a refusal.

    `quoted_passages` are the passages that it cites, `surroundings` the parts of these around each quote. `is_written`
    tells that a language model wrote the text. `gold_indexed` is False where no gold document is indexed.
    """

    id: str
    text: str
    cited: tuple[str, ...]
    passages: tuple[str, ...]
    refused: bool
    quoted_passages: tuple[str, ...] = ()
    surroundings: tuple[str, ...] = ()
    is_written: bool = False
    gold_indexed: bool = True
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its answer."""

    question: Question
    answer: AnswerRow

    @property
    def is_right(self) -> bool:
        """Say whether the text shown holds the gold."""
        is_written = self.answer.is_written
        return not self.answer.refused and self.question.is_held_by(self.answer.text, is_written=is_written)

    @property
    def cites_gold(self) -> bool:
        """Say whether a gold document is cited."""
        return not set(self.answer.cited).isdisjoint(self.question.gold_documents)

    @property
    def stage(self) -> str:
        """Return where the answer to an answerable question was lost, one of STAGES."""
        answer, is_held = self.answer, self.question.is_held_by
        if self.is_right:
            return "shown"
        if not is_held("\n".join((*answer.passages, *answer.quoted_passages))):
            return "not retrieved"
        if answer.refused:
            return "refused"
        if not is_held("\n".join(answer.quoted_passages)):
            return "other passage"
        return "cut" if is_held("\n".join(answer.surroundings)) else "other block"

    def is_in_first(self, n: int) -> bool:
        """Say whether the first `n` passages together hold the gold."""
        return self.question.is_held_by("\n".join(self.answer.passages[:n]))


def pair(questions: Sequence[Question], answers: Sequence[AnswerRow]) -> list[Asked]:
    """Return each question with its answer."""
    answer_by_id = {answer.id: answer for answer in answers}
    return [Asked(question, answer_by_id[question.id]) for question in questions]


def table(asked: Sequence[Asked]) -> Iterator[str]:
    """Yield the lines of a table: kinds, all, languages, and the questions whose gold is in the index."""
    yield HEADER
    for kind in KINDS:
        yield from _line(kind, asked, lambda one, kind=kind: one.question.kind == kind)  # type: ignore[misc]
    yield from _line("ALL", asked, lambda _: True)
    for language in LANGUAGES:
        yield from _line(f"  {language}", asked, lambda one, language=language: _is_in(one, language))  # type: ignore[misc]
    yield from _line("  cross-language", asked, lambda one: one.question.cross_language)
    if not all(one.answer.gold_indexed for one in asked):
        yield from _line("  gold indexed", asked, lambda one: one.answer.gold_indexed)


def stage_table(asked: Sequence[Asked]) -> Iterator[str]:
    """Yield the lines of a table: how many answers to each kind of question were lost at which stage."""
    answerable = [one for one in asked if one.question.is_answerable]
    width = [max(6, len(stage)) + 1 for stage in STAGES]
    yield f"{'':22}" + "".join(f"{stage:>{n}}" for stage, n in zip(STAGES, width, strict=True))
    for kind in (*KINDS, "ALL"):
        stages = [one.stage for one in answerable if kind in (one.question.kind, "ALL")]
        if stages:
            yield f"{kind:22}" + "".join(f"{stages.count(stage):{n}}" for stage, n in zip(STAGES, width, strict=True))


def _is_in(one: Asked, language: str) -> bool:
    return one.question.lang == language and not one.question.cross_language


def _line(name: str, asked: Sequence[Asked], belongs: Callable[[Asked], bool]) -> Iterator[str]:
    chosen = [one for one in asked if belongs(one)]
    if chosen:
        yield line(name, chosen)


def line(name: str, asked: Sequence[Asked]) -> str:
    """Return one row of the table; shares in percent, with the 95 % interval of gold."""
    answerable = [one for one in asked if one.question.is_answerable]
    unanswerable = [one for one in asked if not one.question.is_answerable]
    right = [one.is_right for one in answerable]
    shares = (
        (5, [one.is_in_first(1) for one in answerable]),
        (5, [one.is_in_first(5) for one in answerable]),
        (6, [one.cites_gold for one in answerable]),
    )
    refused = ([one.answer.refused for one in unanswerable], [one.answer.refused for one in answerable])
    n_characters = median(len(one.answer.text) for one in asked)
    cpu_s = sum(one.answer.cpu_s for one in asked) / len(asked)
    return (
        f"{name:22}{len(asked):4}{percent(right):>6} {interval(right):9}"
        + "".join(f"{percent(hits):>{width}}" for width, hits in shares)
        + f"{n_characters:6.0f}{percent(refused[0]):>5}{percent(refused[1]):>5}{cpu_s:8.3f}"
    )


def percent(hits: Sequence[bool]) -> str:
    """Return the share of hits in percent, or a dash where there are none to count."""
    return f"{100 * sum(hits) / len(hits):.0f}" if hits else "–"


def interval(hits: Sequence[bool]) -> str:
    """Return the 95 % interval of the share of hits: percentile bootstrap over questions, fixed seed."""
    if not hits:
        return ""
    low, high = bootstrap(np.array(hits, dtype=float))
    return f"[{low:.0f}–{high:.0f}]"


def difference(first: Sequence[Asked], second: Sequence[Asked]) -> str:
    """Return by how many points the first is right more often than the second on the same questions, paired."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a.question.is_answerable]
    values = np.array([float(a.is_right) - float(b.is_right) for a, b in pairs])
    low, high = bootstrap(values)
    return f"{100 * values.mean():+.0f} [{low:+.0f}–{high:+.0f}]"


def bootstrap(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean of `values`, in percent."""
    random = np.random.default_rng(0)
    means = values[random.integers(0, len(values), (N_RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return 100 * float(low), 100 * float(high)


def misses(asked: Sequence[Asked]) -> Iterator[str]:
    """Yield the questions that were answered wrongly, or answered although there is no answer."""
    for one in asked:
        is_fine = one.is_right if one.question.is_answerable else one.answer.refused
        if not is_fine:
            n_first = next((n for n in range(1, len(one.answer.passages) + 1) if one.is_in_first(n)), None)
            yield f"--- {one.question.id} {one.question.question}\n    gold: {one.question.answer} | passages {n_first}"
            yield "    " + one.answer.text[:700].replace("\n", "\n    ")
