"""The baselines: what a person's plain search would show, BM25 over windows of the documents' plain text.

BM25 as in Robertson and Zaragoza 2009, section 3.4 (k1 = 1.2, b = 0.75). A window also has the words of its file name.
Words are stemmed crudely, and Chinese is cut into pairs of characters.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from benchmarks.answers.plain import PlainDocument
from benchmarks.answers.questions import Question
from benchmarks.answers.scores import AnswerRow

K1, B = 1.2, 0.75
N_PASSAGES = 10
WORD = re.compile(r"[a-z0-9_]+|[а-яё]+|[\u3040-\u30ff\u4e00-\u9fff]+")
ENGLISH_ENDING = re.compile(r"(ings?|ed|es|s)$")
PARAGRAPH = re.compile(r"\n[ \t]*\n+")
STOP_WORDS = frozenset(
    WORD.findall(
        "the a an of in on to is are was were do does did how what which who whom whose when where why i my me can and "
        "or for with it by at from be as that this there have has had many much и в на с по что как где кто какой "
        "какая какие какого у к о за из для ли не а это"
    )
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A search that shows the best `n_shown` windows of `size` characters."""

    size: int
    n_shown: int

    @property
    def name(self) -> str:
        """Return the name shown in the table."""
        return f"BM25, {self.n_shown} × {self.size:,} characters"


BASELINES = (Baseline(400, 1), Baseline(500, 2), Baseline(2000, 1))


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a document's text and where it starts."""

    document_id: str
    start: int
    text: str


class WindowSearch:
    """BM25 over the windows of `size` characters of some documents."""

    def __init__(self, documents: Sequence[PlainDocument], size: int) -> None:
        self.windows = [window for document in documents for window in windows_of(document, size)]
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        for number, window in enumerate(self.windows):
            counts = Counter(terms(window.text) + terms(window.document_id.rsplit(".", 1)[0]))
            self._lengths.append(counts.total())
            for term, count in counts.items():
                self._postings[term].append((number, count))
        self._mean_length = sum(self._lengths) / max(len(self._lengths), 1)

    def best(self, query: str, n: int) -> list[Window]:
        """Return the `n` best windows that do not overlap, best first."""
        scores = self._scores(query)
        chosen: list[Window] = []
        for number in sorted(scores, key=lambda number: (-scores[number], number)):
            if len(chosen) == n:
                break
            if not any(overlap(self.windows[number], window) for window in chosen):
                chosen.append(self.windows[number])
        return chosen

    def _scores(self, query: str) -> dict[int, float]:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in sorted(set(terms(query))):
            postings = self._postings.get(term, ())
            weight = log(1 + (len(self.windows) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                norm = K1 * (1 - B + B * self._lengths[number] / self._mean_length)
                scores[number] += weight * count * (K1 + 1) / (count + norm)
        return scores


def windows_of(document: PlainDocument, size: int) -> Iterator[Window]:
    """Yield windows of `size` characters that begin at paragraphs; a long paragraph is cut in half steps."""
    bounds = [0, *(match.end() for match in PARAGRAPH.finditer(document.text)), len(document.text)]
    last = -size
    for begin, end in pairwise(bounds):
        for start in range(begin, end, size // 2):
            text = document.text[start : start + size]
            if start - last >= size // 5 and text.strip():
                yield Window(document.id, start, text)
                last = start


def overlap(first: Window, second: Window) -> bool:
    """Say whether two windows share text."""
    is_near = abs(first.start - second.start) < max(len(first.text), len(second.text))
    return first.document_id == second.document_id and is_near


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order."""
    return [term for word in WORD.findall(text.lower()) if word not in STOP_WORDS for term in _terms_of_word(word)]


def _terms_of_word(word: str) -> list[str]:
    if word[0] >= "\u3040":
        return [word[i : i + 2] for i in range(len(word) - 1)] or [word]
    if word[0] >= "а":
        return [word[: max(4, len(word) - 2)][:7]]
    return [ENGLISH_ENDING.sub("", word) if len(word) > 4 else word]


def answer_with_windows(questions: Sequence[Question], search: WindowSearch, baseline: Baseline) -> list[AnswerRow]:
    """Answer every question with the best windows."""
    rows = []
    for question in questions:
        windows = search.best(question.question, N_PASSAGES)
        shown = windows[: baseline.n_shown]
        rows.append(
            AnswerRow(
                id=question.id,
                text="\n\n".join(window.text for window in shown),
                cited=tuple(window.document_id for window in shown),
                passages=tuple(window.text for window in windows),
                refused=not windows,
            )
        )
    return rows
