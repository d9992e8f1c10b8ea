"""Figures: measurements as lines of a table, ours beside the peer's, with targets met or missed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

OURS, PEER = "quipu", "lightrag"
NAMES = {OURS: "Quipu", PEER: "LightRAG"}
VECTORS = "vectors"
NOT_MEASURED = "–"
MET, MISSED = "met", "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one step at one size cost one system. Values are seconds, bytes and counts, by name.

    The size is that of the index in chunks, or of the vector index in vectors.
    """

    system: str
    step: str
    n_chunks: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a table: a value for each size of each system, in `unit`.

    `limits` holds the most ours may be (or the least, of `is_least`), by the size from which that holds; None where
    nothing is asked.
    """

    name: str
    unit: str
    values: Mapping[str, Mapping[int, float]]
    limits: Mapping[int, float | None]
    is_least: bool = False

    def limit(self, size: int) -> float | None:
        """Return what is asked of ours at a size."""
        held = [limit for least, limit in sorted(self.limits.items()) if least <= size]
        return held[-1] if held else None

    def missed(self) -> list[int]:
        """Return the sizes at which ours misses its target."""
        return [size for size in self._judged() if not self._keeps(self.values[OURS][size], self.limit(size))]

    def verdict(self) -> str:
        """Return "met", or "missed" and where; "" where nothing is asked of what was measured."""
        missed = self.missed()
        if not missed:
            return MET if self._judged() else ""
        return MISSED if len(missed) == len(self._judged()) else f"{MISSED} at {_listed(missed)}"

    def ratio(self) -> str:
        """Return how many times less ours is at the largest size that both were measured at."""
        both = {size for size, value in self.values[OURS].items() if value and size in self.values[PEER]}
        if not both or self.unit in ("", "yes", "×"):
            return ""
        size = max(both)
        return f"{number(self.values[PEER][size] / self.values[OURS][size])}× at {size:,}"

    def target(self) -> str:
        """Return what is asked, as people write it."""
        sign = "≥" if self.is_least else "≤"
        asked = [(least, limit) for least, limit in sorted(self.limits.items()) if limit is not None]
        if self.unit == "yes":
            return "yes" if asked else ""
        return ", ".join(
            f"{sign} {number(limit)}" + (f" from {least:,}" if least > 0 else "") for least, limit in asked
        )

    def cells(self, columns: Sequence[tuple[str, int]]) -> tuple[str, ...]:
        """Return the line as text: its name, a cell for each system and size, ratio, target and verdict."""
        name = self.name if self.unit in ("", "yes", "×") else f"{self.name}, {self.unit}"
        shown = (self._shown(self.values[system].get(size)) for system, size in columns)
        return (name, *shown, self.ratio(), self.target(), self.verdict())

    def _judged(self) -> list[int]:
        return sorted(size for size in self.values[OURS] if self.limit(size) is not None)

    def _keeps(self, value: float, limit: float | None) -> bool:
        return limit is None or (value >= limit if self.is_least else value <= limit)

    def _shown(self, value: float | None) -> str:
        if value is None:
            return NOT_MEASURED
        if self.unit == "yes":
            return "yes" if value else "no"
        return f"{number(value)}{'×' if self.unit == '×' else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table as text: its title, its heads, its lines, and the lines in full."""

    title: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    cells: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table in Markdown."""
        rows = [self.head, ["---", *["---:"] * (len(self.head) - 3), "---", "---"], *self.cells]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A kind of line: which value of which step, in which unit; `growth` is the size it is counted from, if it is one.

    `limits` as in Line.
    """

    name: str
    step: str
    value: str
    unit: str
    limits: Mapping[int, float | None] = field(default_factory=dict)
    is_least: bool = False
    growth: int | None = None


_EVERY = 0
_SCALES = {"ms": 1e3, "s": 1.0, "MB": 1e-6, "KB": 1e-3, "": 1.0, "yes": 1.0, "×": 1.0}
_OF_CHUNKS = (
    _Figure("own CPU per chunk", "ingest", "cpu_s", "ms", {_EVERY: 5}),
    _Figure("own CPU per chunk, the last fifth", "ingest", "last_cpu_s", "ms", {_EVERY: 5}),
    _Figure("its growth", "ingest", "last_cpu_s", "×", {_EVERY: 1.5}, growth=_EVERY),
    _Figure("own CPU per chunk, the store alone", "store", "cpu_s", "ms"),
    _Figure("written per chunk", "ingest", "handed_bytes", "MB", {_EVERY: 0.6}),
    _Figure("its growth from 4,000 chunks", "ingest", "handed_bytes", "×", {_EVERY: 1.5}, growth=4_000),
    _Figure("add a document of 1 chunk: CPU", "add1", "cpu_s", "ms", {4_000: 50}),
    _Figure("add a document of 1 chunk: wall", "add1", "wall_s", "ms", {4_000: 50}),
    _Figure("add a document of 1 chunk: written", "add1", "handed_bytes", "MB"),
    _Figure("add a document of 10 chunks: CPU", "add10", "cpu_s", "ms"),
    _Figure("add a document of 10 chunks: written", "add10", "handed_bytes", "MB"),
    _Figure("`mix` context, asked first: CPU p50", "ask", "cpu_s", "ms", {_EVERY: 10, 40_000: 25}),
    _Figure("`mix` context, asked first: CPU p95", "ask", "cpu_p95_s", "ms"),
    _Figure("`mix` context, asked again: CPU p50", "again", "cpu_s", "ms", {_EVERY: 10, 40_000: 25}),
    _Figure("`mix` context, asked again: CPU p95", "again", "cpu_p95_s", "ms"),
    _Figure("`mix` with its quoted answer: CPU p50", "answer", "cpu_s", "ms"),
    _Figure("open an index: wall", "open", "wall_s", "ms", {_EVERY: 300}),
    _Figure("open an index and ask: CPU", "open", "first_cpu_s", "ms"),
    _Figure("open an index and ask: wall", "open", "first_wall_s", "ms"),
    _Figure("disk per chunk beyond its text", "ingest", "disk_bytes", "KB", {_EVERY: 30}),
    _Figure("peak memory of ingest", "ingest", "peak_bytes", "MB", {4_000: 250, 4_001: None}),
    _Figure("remove a tenth: CPU per chunk removed", "remove", "cpu_s", "ms"),
    _Figure("its growth", "remove", "cpu_s", "×", {_EVERY: 1.5}, growth=_EVERY),
    _Figure("the rest is byte-identical", "remove", "is_same", "yes", {_EVERY: 1}, is_least=True),
)
_OF_VECTORS = (
    _Figure("query: CPU", VECTORS, "query_s", "ms", {_EVERY: 5, 1_000_000: 30}),
    _Figure("recall@10", VECTORS, "recall", "", {_EVERY: 0.99}, is_least=True),
    _Figure("add 100, found and written: wall", VECTORS, "add_s", "ms", {_EVERY: 10, 1_000_000: None}),
    _Figure("open: wall", VECTORS, "open_s", "ms", {_EVERY: 50, 1_000_000: None}),
    _Figure("memory resident", VECTORS, "memory_bytes", "MB", {1_000_000: 300}),
)


def sheets(measurements: Sequence[Measurement]) -> list[Sheet]:
    """Return the tables: by the size of the index in chunks, and by the size of a vector index."""
    vectors = [m for m in measurements if m.step == VECTORS]
    chunks = [m for m in measurements if m.step != VECTORS]
    found = (_sheet("by chunks in the index", _OF_CHUNKS, chunks), _sheet("by vectors of 384", _OF_VECTORS, vectors))
    return [sheet for sheet in found if sheet.lines]


def number(value: float) -> str:
    """Return a number in three figures, and no more than four places, as people write it."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    shown = f"{value:.3g}"
    return f"{value:.4f}" if "e" in shown else shown


def _sheet(title: str, figures: Iterable[_Figure], measurements: Sequence[Measurement]) -> Sheet:
    lines = [line for figure in figures if (line := _line(figure, measurements)).values[OURS]]
    columns = [
        (system, size)
        for system in (OURS, PEER)
        for size in sorted({m.n_chunks for m in measurements if m.system == system})
    ]
    head = ("figure", *(f"{NAMES[system]} {size:,}" for system, size in columns), "ratio", "target", "")
    return Sheet(title=title, head=head, lines=tuple(lines), cells=tuple(line.cells(columns) for line in lines))


def _line(figure: _Figure, measurements: Iterable[Measurement]) -> Line:
    values: dict[str, dict[int, float]] = {OURS: {}, PEER: {}}
    for m in measurements:
        if m.step == figure.step and figure.value in m.values:
            values[m.system][m.n_chunks] = m.values[figure.value] * _SCALES[figure.unit]
    if figure.growth is not None:
        values = {system: _growth(by_size, figure.growth) for system, by_size in values.items()}
    return Line(name=figure.name, unit=figure.unit, values=values, limits=figure.limits, is_least=figure.is_least)


def _growth(by_size: Mapping[int, float], first: int) -> dict[int, float]:
    """Return how many times the least value of the smaller sizes, from `first` on, each size has."""
    sizes = sorted(size for size in by_size if size >= first)
    return {size: by_size[size] / min(by_size[smaller] for smaller in sizes if smaller < size) for size in sizes[1:]}


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)
