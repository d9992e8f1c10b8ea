"""Results as they are kept: files, the section of docs/figures.md, the picture, and what the processes said."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.progress import Progress

from benchmarks.speed import machine, results, runner
from benchmarks.speed.figures import OURS, PEER, Measurement
from benchmarks.speed.picture import picture
from benchmarks.speed.results import BEGIN, END, Run

ROOT = Path(__file__).resolve().parents[3]
MEASURED = tuple(
    Measurement(system=system, step="ingest", n_chunks=size, values={"last_cpu_s": cpu, "handed_bytes": cpu * 1e8})
    for system, size, cpu in ((OURS, 200, 0.004), (OURS, 4_000, 0.005), (PEER, 200, 0.02), (PEER, 4_000, 0.2))
)
RUN = Run(
    command="python -m benchmarks.speed",
    date="2026-01-31 12:00 UTC",
    commit="abc1234",
    machine={"processor": "Abacus", "cores": "2"},
    versions={"numpy": "2.4.6"},
    measurements=MEASURED,
    notes=("LightRAG was left out from here on.",),
)


def test_a_run_that_was_saved_is_loaded_as_it_was(tmp_path: Path) -> None:
    results.save(RUN, tmp_path)
    assert results.load(tmp_path) == RUN
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.json", "speed.md", "speed.svg"]


def test_the_page_says_how_when_where_and_what_was_left_out() -> None:
    page = results.page(RUN)
    for part in (RUN.command, RUN.date, "processor Abacus", "commit abc1234", "numpy 2.4.6", *RUN.notes, "| 40× at"):
        assert part in page


def test_the_page_shows_the_saved_run() -> None:
    page = results.FIGURES_PAGE.read_text("utf-8")
    if not (results.RESULTS / "speed.json").exists():
        pytest.skip("no run is kept yet")
    assert results.with_section(page, results.section(results.load(results.RESULTS))) == page


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    assert results.with_section(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\nnew\n{END} b"
    with pytest.raises(ValueError, match="no section"):
        results.with_section("a", "new")


def test_the_picture_is_xml_with_every_value_written_at_its_place() -> None:
    root = ElementTree.fromstring(picture(MEASURED))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for value in ("4", "5", "20", "200", "0.4", "2", "Quipu", "LightRAG", "4,000", "target 5"):
        assert value in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 4


def test_a_picture_of_nothing_is_still_a_picture() -> None:
    assert ElementTree.fromstring(picture([])).tag.endswith("svg")


def test_the_machine_is_told_without_names_of_hosts_or_folders() -> None:
    found = machine.machine()
    assert list(found) == ["processor", "cores", "memory", "system", "python"]
    assert all(found.values())
    assert not any(str(ROOT) in value for value in found.values())


def test_lines_that_are_meant_for_the_runner_are_told_from_others() -> None:
    script = (
        "from benchmarks.speed import process; print('noise');"
        "process.progress(1, 2); process.report('quipu', 'ask', 20, {'cpu_s': 1.5})"
    )
    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    measured = Measurement(system="quipu", step="ask", n_chunks=20, values={"cpu_s": 1.5})
    assert list(runner.messages(said.splitlines())) == ["1 of 2", measured]


def test_a_step_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    steps = runner.Runner(folder=tmp_path, bar=Progress())
    with pytest.raises(runner.Failed, match=r"Quipu, 20 chunks: dance failed: .*KeyError: 'dance'"):
        steps.ours("dance", tmp_path, 20)


def test_without_an_environment_for_lightrag_it_is_left_out_and_the_reason_told(tmp_path: Path) -> None:
    (tmp_path / "venv").write_text("a file where a folder should be")
    steps = runner.Runner(folder=tmp_path, bar=Progress())
    steps.install_peer(tmp_path / "venv")
    assert len(steps.notes) == 1
    assert steps.notes[0].startswith("LightRAG was left out: LightRAG could not be installed in ")
    steps.peer("ingest", tmp_path, 20)
    assert steps.measured == []


def test_the_figures_of_the_vector_benchmark_are_read_in_its_order() -> None:
    measured = runner.of_vectors(100, [1.0, 20.0, 9.0, 3.0, 0.99, 9.0, 9.0, 0.9, 4.0, 6.0, 10.0, 15.0])
    assert measured.values == {
        "query_s": 0.003,
        "recall": 0.99,
        "add_s": 0.01,
        "open_s": 0.02,
        "memory_bytes": 25e6,
    }
