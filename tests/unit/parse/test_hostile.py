"""Tests of files made to break parsers: each is a sound document or a refusal with a remedy, in bounded memory."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from itertools import permutations
from pathlib import Path
from zipfile import ZipFile

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import pdf, sandbox
from tests.unit.parse import hostile
from tests.unit.parse.files import read, zipped

ROOT = Path(__file__).resolve().parents[3]
VALID = hostile.valid_files()
REFUSED = {
    "text of more paragraphs than are kept",
    "formatting that goes on forever",
    "an element of many attributes",
    "a row of many cells",
    "a header of many lines",
    "a bomb",
    "a directory that lies",
    "a billion laughs",
    "an entity from outside",
    "an element of many attributes in Word",
    "a note cited again and again",
    "a text shared by many cells",
    "a chapter out of the book",
    "a page tree in a loop",
    "a million pages",
}
READ = {
    "text of one long line",
    "marks upon one letter",
    "UTF-32",
    "deep quotes",
    "halves of pairs in JSON",
    "a header of encoded words",
    "styles upon styles",
    "a level of thousands of digits",
}


@pytest.mark.skipif(sys.platform != "linux", reason="the system bounds a process's memory on Linux only")
def test_hostile_files_are_read_or_refused_in_bounded_memory_and_time() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.parse.hostile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    names = [each["case"] for each in said if "case" in each]
    assert (done.returncode, names[-1:], done.stderr) == (0, [list(hostile.CASES)[-1]], "")
    ended = dict(zip(names, (each["ended"] for each in said if "ended" in each), strict=True))
    assert {name for name in REFUSED if not ended[name]} == set()
    assert {name: ended[name] for name in READ if ended[name]} == {}


@pytest.mark.parametrize("suffix", VALID)
def test_the_files_that_are_mutated_are_sound(suffix: str) -> None:
    assert hostile.outcome(suffix, VALID[suffix]) == ""


@pytest.mark.parametrize("suffix", VALID)
def test_mutated_files_are_read_or_refused(suffix: str, laws_scale: int) -> None:
    n_seeds = (8 if suffix == ".pdf" else 120) * laws_scale
    for seed in range(n_seeds):
        chance = random.Random(f"{suffix} {seed}")
        hostile.outcome(suffix, _mutated(VALID[suffix], chance))


@pytest.mark.parametrize("suffix", [suffix for suffix, data in VALID.items() if data.startswith(b"PK")])
def test_archives_whose_parts_are_mutated_are_read_or_refused(suffix: str, laws_scale: int) -> None:
    with ZipFile(BytesIO(VALID[suffix])) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for seed in range(60 * laws_scale):
        chance = random.Random(f"{suffix} {seed}")
        name, other = chance.choice(sorted(parts)), chance.choice(sorted(parts))
        changed = {**parts, name: _mutated(parts[name], chance)}
        if seed % 3 == 0:
            changed[name], changed[other] = parts[other], parts[name]
        hostile.outcome(suffix, zipped(changed))


@pytest.mark.parametrize(("suffix", "other"), [pair for pair in permutations(VALID, 2) if pair[0] != ".pdf"])
def test_a_file_under_another_formats_suffix_is_read_or_refused(suffix: str, other: str) -> None:
    reason = hostile.outcome(suffix, VALID[other])
    if VALID[other].startswith((b"PK", b"%PDF")):
        assert "has the wrong suffix" in reason


@pytest.mark.parametrize("suffix", [".txt", ".md", ".html", ".csv", ".json"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_text_with_a_mark_is_read_in_its_encoding(suffix: str, encoding: str) -> None:
    text = VALID[suffix].decode()
    assert read(f"a{suffix}", text.encode(encoding)).text == read(f"a{suffix}", text.encode()).text


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("while True: pass", "more than 1 seconds"),
        ("import signal; signal.pause()", "more than 1 seconds"),
        ("bytearray(1 << 40)", "damaged"),
        ("import ctypes; ctypes.string_at(0)", r"library failed to read it \(code -11\)"),
        ("import os; os.abort()", "more memory"),
        ("pass", r"library failed to read it \(code 0\)"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="signals and limits as Linux has them")
def test_a_reader_that_hangs_or_dies_is_a_refused_file(
    script: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "reader.py").write_text(script)
    monkeypatch.setattr(pdf, "_READER", str(tmp_path / "reader.py"))
    monkeypatch.setattr(pdf, "MAX_PDF_SECONDS", 1)
    monkeypatch.setitem(pdf._REFUSALS, "time", ("takes more than 1 seconds to read", "Split it."))
    with pytest.raises(InvalidDocument, match=message) as caught:
        read("a.pdf", VALID[".pdf"])
    assert caught.value.remedy


def test_progress_is_read_from_whatever_a_reader_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox, "_REPORT_S", 0.0)
    (tmp_path / "reader.py").write_text(
        "import sys\n"
        "sys.stderr.write('x' * 100_000 + '\\n1/3\\nwarning: 2/3 of it\\n-1/3\\n' + '9' * 50 + '/3\\n')\n"
        "sys.stderr.write('1/3\\n' * 50_000 + '3/3\\n4/')\n"
        "sys.stdout.write('read')"
    )
    progress: list[tuple[int, int]] = []

    def on_pages(n_done: int, n_total: int) -> None:
        progress.append((n_done, n_total))

    reader = str(tmp_path / "reader.py")
    assert sandbox.run_sandboxed(reader, (), b"", max_bytes=10**9, max_seconds=9, on_pages=on_pages) == b"read"
    assert progress == [(1, 3), (3, 3)]


def test_the_progress_of_a_reader_that_dies_ends_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox, "_REPORT_S", 0.0)
    (tmp_path / "reader.py").write_text("import os; os.write(2, b'1/3\\n'); os.abort()")
    progress: list[int] = []
    with pytest.raises(sandbox.SandboxFailure):
        sandbox.run_sandboxed(
            str(tmp_path / "reader.py"),
            (),
            b"",
            max_bytes=10**9,
            max_seconds=9,
            on_pages=lambda n_done, _: progress.append(n_done),
        )
    assert progress == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_process_that_a_reader_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(
        "import os, sys, time\n"
        "if not (left_behind := os.fork()):\n"
        "    os.close(1)\n"
        "    time.sleep(30)\n"
        "    open(__file__ + '.waited', 'w')\n"
        "    os._exit(0)\n"
        "sys.stdout.write(str(left_behind))"
    )
    reader = str(tmp_path / "reader.py")
    output = sandbox.run_sandboxed(reader, (), b"", max_bytes=10**9, max_seconds=99, on_pages=lambda *_: None)
    os.kill(int(output), signal.SIGKILL)
    assert not Path(reader + ".waited").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_ctrl_c_that_reaches_the_reader_is_no_fault_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "reader.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    with pytest.raises(KeyboardInterrupt):
        sandbox.run_sandboxed(str(tmp_path / "reader.py"), (), b"", max_bytes=10**9, max_seconds=9)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
def test_a_reader_dies_with_who_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(
        "import os, signal\nos.write(2, b'begun\\n')\nsignal.sigtimedwait([], 20)\nos.write(2, b'lives')"
    )
    waiting = "import sys; from quipu.parse import sandbox; sandbox.subprocess.DEVNULL = None; " + (
        "sandbox.run_sandboxed(sys.argv[1], (), b'', max_bytes=10**9, max_seconds=99)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", waiting, str(tmp_path / "reader.py")], stderr=subprocess.PIPE
    ) as parent:
        assert parent.stderr
        assert parent.stderr.readline() == b"begun\n"
        parent.send_signal(signal.SIGKILL)
        assert parent.stderr.read() == b""  # at its end, for which the reader must have closed it too


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_limits_of_the_user_below_ours_are_kept() -> None:
    said = subprocess.run(
        ["/bin/sh", "-c", f"ulimit -t 100; exec {sys.executable} - "],
        input="import sys; from tests.unit.parse.hostile import outcome, valid_files\n"
        "print(repr(outcome('.pdf', valid_files()['.pdf'])))",
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout == "''\n", said.stderr


def _mutated(data: bytes, chance: random.Random) -> bytes:
    """Return `data` changed in one to four places."""
    changes: list[Callable[[bytes, int, int, random.Random], bytes]] = [_cut, _flip, _repeat, _drop, _splice, _inflate]
    for _ in range(chance.randint(1, 4)):
        start, end = sorted(chance.choices(range(len(data) + 1), k=2))
        data = chance.choice(changes)(data, start, end, chance)
    return data


def _cut(data: bytes, start: int, _end: int, _chance: random.Random) -> bytes:
    return data[:start]


def _flip(data: bytes, start: int, _end: int, chance: random.Random) -> bytes:
    return data[:start] + chance.choice([b"\0", b"\xff", b"<", b'"', b"\n", chance.randbytes(4)]) + data[start + 1 :]


def _repeat(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:start] + data[start : min(end, start + 200)] * chance.choice([2, 50]) + data[end:]


def _drop(data: bytes, start: int, end: int, _chance: random.Random) -> bytes:
    return data[:start] + data[min(end, start + 40) :]


def _splice(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    other = VALID[chance.choice(sorted(VALID))]
    return data[:start] + other[: end - start] + data[end:]


def _inflate(data: bytes, start: int, _end: int, chance: random.Random) -> bytes:
    """Write a large number over some bytes: a size that is declared, where there is one."""
    number = chance.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"99999999", b"4294967296", b"-1"])
    return data[:start] + number + data[start + len(number) :]
