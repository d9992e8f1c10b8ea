"""The table of figures: values, ratios, targets met and missed."""

from benchmarks.speed.figures import OURS, PEER, Line, Measurement, number, sheets


def measurement(system: str, step: str, n_chunks: int, **values: float) -> Measurement:
    """Return a measurement."""
    return Measurement(system=system, step=step, n_chunks=n_chunks, values=values)


def line(*, unit: str = "ms", limits: dict[int, float | None] | None = None, **ours: float) -> Line:
    """Return a line with ours at the sizes given as n200=…, n4000=…."""
    values = {int(size.removeprefix("n")): value for size, value in ours.items()}
    return Line(name="work", unit=unit, values={OURS: values, PEER: {}}, limits=limits or {})


def test_a_line_shows_every_size_the_ratio_the_target_and_the_verdict() -> None:
    (sheet,) = sheets(
        [
            measurement(OURS, "ingest", 200, cpu_s=0.004),
            measurement(OURS, "ingest", 4_000, cpu_s=0.006),
            measurement(PEER, "ingest", 200, cpu_s=0.020),
        ]
    )
    assert sheet.head == ("figure", "Quipu 200", "Quipu 4,000", "LightRAG 200", "ratio", "target", "")
    assert sheet.cells == (("own CPU per chunk, ms", "4", "6", "20", "5× at 200", "≤ 5", "missed at 4,000"),)


def test_the_table_in_markdown_has_a_rule_under_its_head() -> None:
    (sheet,) = sheets([measurement(OURS, "ingest", 200, cpu_s=0.004)])
    assert sheet.markdown().splitlines() == [
        "| figure | Quipu 200 | ratio | target |  |",
        "| --- | ---: | ---: | --- | --- |",
        "| own CPU per chunk, ms | 4 |  | ≤ 5 | met |",
    ]


def test_what_was_not_measured_is_a_dash_and_no_line_is_the_peers_alone() -> None:
    (sheet,) = sheets(
        [
            measurement(OURS, "ingest", 200, cpu_s=0.004),
            measurement(OURS, "open", 4_000, wall_s=0.2),
            measurement(PEER, "ask", 200, cpu_s=0.3),
        ]
    )
    assert [cells[:4] for cells in sheet.cells] == [
        ("own CPU per chunk, ms", "4", "–", "–"),
        ("open an index: wall, ms", "–", "200", "–"),
    ]


def test_growth_is_counted_from_the_smallest_size_it_is_asked_from() -> None:
    sizes = {200: 0.1e6, 4_000: 0.2e6, 40_000: 0.32e6}
    (sheet,) = sheets([measurement(OURS, "ingest", size, handed_bytes=value) for size, value in sizes.items()])
    assert [cells[0:4] for cells in sheet.cells] == [
        ("written per chunk, MB", "0.1", "0.2", "0.32"),
        ("its growth from 4,000 chunks", "–", "–", "1.6×"),
    ]
    assert sheet.cells[1][-1] == "missed"


def test_growth_is_over_the_least_of_the_smaller_sizes() -> None:
    sizes = {200: 0.006, 1_000: 0.004, 4_000: 0.005}
    (sheet,) = sheets([measurement(OURS, "ingest", size, last_cpu_s=value) for size, value in sizes.items()])
    assert sheet.cells[1] == ("its growth", "–", "0.667×", "1.25×", "", "≤ 1.5", "met")


def test_a_target_holds_from_its_size_on_until_another_does() -> None:
    limits: dict[int, float | None] = {0: 10, 40_000: 25, 40_001: None}
    assert line(limits=limits, n200=9, n4000=11, n40000=20, n100000=90).missed() == [4_000]
    assert line(limits=limits, n200=9, n40000=26).verdict() == "missed at 40,000"
    assert line(limits=limits, n200=11, n4000=11).verdict() == "missed"
    assert line(limits={4_000: 50}, n200=90).verdict() == ""
    assert line(limits=limits, n200=1).target() == "≤ 10, ≤ 25 from 40,000"


def test_a_share_must_be_at_least_its_target_and_a_claim_must_hold() -> None:
    (sheet,) = sheets([measurement(OURS, "vectors", 100_000, recall=0.98)])
    assert sheet.cells == (("recall@10", "0.98", "", "≥ 0.99", "missed"),)
    (sheet,) = sheets([measurement(OURS, "remove", 200, is_same=0.0), measurement(OURS, "remove", 400, is_same=1.0)])
    assert sheet.cells == (("the rest is byte-identical", "no", "yes", "", "yes", "missed at 200"),)


def test_chunks_and_vectors_have_a_table_each() -> None:
    found = sheets([measurement(OURS, "vectors", 100_000, query_s=0.001), measurement(OURS, "open", 200, wall_s=0.1)])
    assert [(sheet.title, len(sheet.cells)) for sheet in found] == [
        ("by chunks in the index", 1),
        ("by vectors of 384", 1),
    ]


def test_numbers_have_three_figures() -> None:
    assert [number(value) for value in (1234.5, 123.4, 12.345, 1.0, 0.05678, 0.00001234)] == [
        "1,234",
        "123",
        "12.3",
        "1",
        "0.0568",
        "0.0000",
    ]
