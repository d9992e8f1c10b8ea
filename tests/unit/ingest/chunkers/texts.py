"""Texts for tests of chunkers: written by chance, edited, parsed, and what is to hold of any chunks of them."""

import itertools
import random
from collections.abc import Callable, Sequence

from quipu.ingest.chunkers import ChunkSpan
from quipu.model.document import Block, ParsedDocument, SourceDocument
from quipu.parse.markdown import MarkdownParser

PIECES = [
    "word ",
    "Sentence one. ",
    "Mr. X. ",
    "字句。",
    "文",
    "\n",
    "\n\n",
    "# Head\n\n",
    "## Sub\n",
    "- item\n",
    "| a | b |\n",
]
PIECES += ["```\ncode\n```\n", "é", "👩‍👩‍👧", "q\u0301", "x" * 40, " " * 9, "\u0301", "!", "end."]


def count(text: str) -> int:
    """Return the tokens of a text: a quarter of its bytes."""
    return -(-len(text.encode()) // 4)


def parsed(text: str) -> ParsedDocument:
    """Return a Markdown document."""
    return MarkdownParser().parse(SourceDocument(id="a", content=text.encode(), media_type="text/markdown"))


def table(n_rows: int, *, before: str = "", after: str = "") -> ParsedDocument:
    """Return a table of numbered rows below a header row, between two paragraphs."""
    header = "| city | year |"
    rows = "\n".join(f"| name of city {number} | year {number} |" for number in range(n_rows))
    body = f"{header}\n{rows}"
    parts = [(before, "paragraph", ""), (body, "table", header), (after, "paragraph", "")]
    blocks = []
    text = ""
    for part, kind, row in parts:
        if part:
            text += "\n\n" if text else ""
            blocks.append(Block(start=len(text), end=len(text) + len(part), kind=kind, header=row))
            text += part
    return ParsedDocument(text=text, title="", blocks=tuple(blocks))


def plain(text: str) -> ParsedDocument:
    """Return a document without blocks."""
    return ParsedDocument(text=text, title="", blocks=())


def assert_cover(text: str, spans: Sequence[ChunkSpan]) -> None:
    """Every visible character is in a span; starts and ends rise; no span begins or ends with space."""
    covered = 0
    for span in spans:
        assert not text[covered : span.start].strip()
        assert span.end > covered
        covered = span.end
    assert not text[covered:].strip()
    assert all(before.start < after.start for before, after in itertools.pairwise(spans))
    assert all(text[span.start : span.end] == text[span.start : span.end].strip() != "" for span in spans)


def assert_partition(text: str, spans: Sequence[ChunkSpan]) -> None:
    """Every visible character is in exactly one span, in order, and no span begins or ends with space."""
    edges = [0, *itertools.chain.from_iterable((span.start, span.end) for span in spans), len(text)]
    assert edges == sorted(edges)
    assert not "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)).strip()
    assert all(text[span.start : span.end] == text[span.start : span.end].strip() != "" for span in spans)


class Writer:
    """Writes prose of made-up words, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [
            "".join(self._random.choices("abcdefghiklmnoprstuvw", k=self._random.randint(2, 9))) for _ in range(3_000)
        ]

    def sentence(self) -> str:
        return " ".join(self._random.choices(self._words, k=self._random.randint(4, 16))).capitalize() + "."

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self._random.randint(1, 6)))

    def edit(self, units: Sequence[str], write: Callable[[], str]) -> list[str]:
        """Return `units` with one replaced, removed, lengthened, or with one to three new ones, anywhere."""
        index = self._random.choice([0, len(units) - 1, *self._random.choices(range(len(units)), k=6)])
        before, unit, after = list(units[:index]), units[index], list(units[index + 1 :])
        kind = self._random.randrange(4)
        if kind == 0:
            return [*before, write(), *after]
        if kind == 1:
            return [*before, *after]
        if kind == 2:
            return [*before, unit + " And more.", *after]
        return [*before, *(write() for _ in range(self._random.randint(1, 3))), unit, *after]
