"""Picture: cost per chunk against the size of the index, both axes logarithmic, as SVG."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks.speed.figures import NAMES, OURS, PEER, Measurement, number

WIDTH, HEIGHT = 880, 420
_PLOT_WIDTH, _PLOT_HEIGHT, _TOP = 340, 260, 90
_COLOURS = {OURS: "#0b6e4f", PEER: "#b23a48"}
_GREY, _INK = "#d0d0d0", "#222222"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Panel:
    """One diagram: its title, its place, and how its values are read from a measurement."""

    title: str
    left: int
    value: str
    scale: float
    target: float


_PANELS = (
    _Panel("own CPU per chunk, the last fifth (ms)", 70, "last_cpu_s", 1e3, 5),
    _Panel("bytes written per chunk (MB)", 510, "handed_bytes", 1e-6, 0.6),
)


def picture(measurements: Sequence[Measurement]) -> str:
    """Return the SVG of the ingest measurements: CPU on the left, bytes written on the right."""
    ingests = sorted((m for m in measurements if m.step == "ingest"), key=lambda m: m.n_chunks)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 26, "Cost of a chunk against the size of the index", size=17, anchor="middle"),
    ]
    for index, system in enumerate(sorted({m.system for m in ingests}, reverse=True)):
        x = WIDTH / 2 - 80 + 100 * index
        parts += [_dot(x, 45, _COLOURS[system]), _text(x + 9, 49, NAMES[system], colour=_COLOURS[system])]
    for panel in _PANELS:
        lines = {
            system: [(m.n_chunks, m.values[panel.value] * panel.scale) for m in ingests if m.system == system]
            for system in (OURS, PEER)
        }
        parts += _drawn(panel, {system: points for system, points in lines.items() if points})
    return "\n".join([*parts, "</svg>", ""])


def _drawn(panel: _Panel, lines: Mapping[str, Points]) -> Iterator[str]:
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points] + [panel.target]
    if not xs:
        return
    x = _axis(min(xs) / 1.5, max(xs) * 1.5, panel.left, panel.left + _PLOT_WIDTH)
    y = _axis(min(ys) / 2, max(ys) * 2.5, _TOP + _PLOT_HEIGHT, _TOP)
    bottom, right = _TOP + _PLOT_HEIGHT, panel.left + _PLOT_WIDTH
    yield _text(panel.left, _TOP - 12, panel.title)
    for tick in _ticks(min(ys) / 2, max(ys) * 2.5):
        yield _line(panel.left, y(tick), right, y(tick), _GREY)
        yield _text(panel.left - 8, y(tick) + 4, number(tick), anchor="end")
    for size in sorted(set(xs)):
        yield _line(x(size), bottom, x(size), bottom + 5, _INK)
        yield _text(x(size), bottom + 20, f"{size:,.0f}", anchor="middle")
    yield _text(panel.left + _PLOT_WIDTH / 2, bottom + 42, "chunks in the index", anchor="middle")
    frame = f'x="{panel.left}" y="{_TOP}" width="{_PLOT_WIDTH}" height="{_PLOT_HEIGHT}"'
    yield f'<rect {frame} fill="none" stroke="{_INK}"/>'
    yield _line(panel.left, y(panel.target), right, y(panel.target), "#888888", dashes="5 4")
    yield _text(panel.left + 6, y(panel.target) + 15, f"target {number(panel.target)}", colour="#666666")
    for system, points in lines.items():
        yield from _curve(system, [(x(size), y(value)) for size, value in points], [value for _, value in points])


def _curve(system: str, places: Points, values: Sequence[float]) -> Iterator[str]:
    colour = _COLOURS[system]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
    for (x, y), value in zip(places, values, strict=True):
        yield _dot(x, y, colour)
        yield _text(x, y - 10, number(value), anchor="middle", colour=colour)


def _axis(least: float, most: float, start: float, end: float) -> Callable[[float], float]:
    span = math.log(most) - math.log(least)
    return lambda value: start + (end - start) * (math.log(value) - math.log(least)) / span


def _ticks(least: float, most: float) -> list[float]:
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    return [tick for power in powers for step in (1, 3) if least <= (tick := step * 10.0**power) <= most]


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = _INK, size: int = 13) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(text)}</text>'
    )
