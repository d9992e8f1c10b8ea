"""Hostile folders, through the command line: every good file is indexed, every bad one listed, memory is bounded."""

import json
import os
import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from quipu.cli.app import run
from quipu.text.unicode import clean
from tests.children import PATIENCE_S
from tests.unit.parse.hostile import CASES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names, links and limits as Linux has them")

TEXT = b"Alice Kober taught classics at Brooklyn College.\n"
MEGABYTE = 1_000_000
# What `quipu add` takes for itself, and for each character of the largest document (docs/architecture.md).
MEMORY = 400 * MEGABYTE
MEMORY_A_CHARACTER = 40
LONG_S = 3600.0  # `make laws` reads 50 MB

NAMES = (
    "quote'.txt", 'double".txt', "new\nline.txt", "tab\t.txt", "\x1b[31mred.txt", "bell\x07.txt", "\x7f.txt",
    "\u202etxt.exe.txt", "שלום.txt", "e\u0301" * 60 + ".txt", "\x9b1m.txt", "a" + "\u0301" * 120 + ".txt",
    "\U0001f469\u200d\U0001f467.txt", "x" * 251 + ".txt", "--help.txt", "-rf.txt", "https:__a.com?b=c&d.txt", "*.txt",
    "[a-z].txt", "$(touch pwned).txt", ";.txt", "%s%n.txt", "{0.__class__}.txt", "[bold]x[-bold].txt",
    "back\\slash.txt", " lead.txt", " .txt", "\u2028.txt", "\udcff\udcfe.txt", "folder.txt/a.md",
)  # fmt: skip
BAD = {
    "nul.txt": b"a\0b",
    "half.md": b"\xff\xfe\x00\xd8",
}
OTHER_ENCODINGS = {"latin.txt": b"caf\xe9", "mixed.txt": b"\xc3\xa9\xe9"}  # read, with a guess
ODD = (
    "halves of pairs in JSON",
    "a billion laughs",
    "nested parts of mail",
    "numbers of thousands of digits",
    "a page tree in a loop",
    "a chapter out of the book",
    "a bomb",
)
# While files are looked for and read, every other one is removed, the last first, and the rest are written anew.
MEDDLE = """
import pathlib
while not pathlib.Path('../index').exists():
    pass
for number in range(199, -1, -1):
    path = pathlib.Path(f"{number:03}.txt")
    path.unlink() if number % 2 else path.write_text("Michael Ventris read Linear B.")
"""
# Runs the command of its arguments and writes the most kilobytes it had resident to the first of them.
MEASURE = """
import pathlib, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
pathlib.Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


@dataclass(frozen=True)
class Ran:
    """What a command printed and took: its exit code, output, errors, and peak memory in bytes."""

    code: int
    out: str
    err: str
    peak: int


def quipu(folder: Path, *words: str | bytes) -> Ran:
    """Run a command on the index of `folder`, in a process of its own, below one that is small.

    A process is charged with the memory of the one that started it, so the tests' own process cannot do that.
    """
    out, err, peak = folder / "out.txt", folder / "err.txt", folder / "peak.txt"
    command = [sys.executable, "-m", "quipu", "--index", str(folder / "index"), *words]
    with out.open("wb") as standard_output, err.open("wb") as standard_error:
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, str(peak), *command],
            stdout=standard_output,
            stderr=standard_error,
            check=False,
            timeout=LONG_S,
        )
    ran = Ran(done.returncode, out.read_text(), err.read_text(), int(peak.read_text()) * 1024)
    assert "Traceback" not in ran.out + ran.err
    assert "should not" not in ran.err
    return ran


def hostile_folder(top: Path) -> None:
    """Make a folder of good files with bad names, bad files, and links, pipes and devices."""
    secret = top.parent / "secret.txt"
    secret.write_text("The secret of Linear B.")
    for name in NAMES:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TEXT)
    for good_name, data in {**BAD, **OTHER_ENCODINGS, "empty.txt": b""}.items():
        (top / good_name).write_bytes(data)
    for number, case in enumerate(ODD):
        suffix, build = CASES[case]
        (top / f"odd{number}{suffix}").write_bytes(build())
    for link, target in (("out.txt", secret), ("loop.txt", top / "loop.txt"), ("self", top), ("zero.txt", "/dev/zero")):
        (top / link).symlink_to(target)
    os.mkfifo(top / "pipe.txt")
    with (top / "sparse.txt").open("wb") as file:
        file.truncate(2**40)


def assert_harmless(texts: Sequence[str]) -> None:
    """Nothing printed steers a terminal."""
    assert all(clean(text) == text for text in texts), [
        hex(ord(character)) for text in texts for character in text if unicodedata.category(character) in ("Cc", "Cf")
    ]


def test_a_hostile_folder_gives_a_clean_index_and_a_reason_for_every_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def here(*words: str) -> str:
        code = run(("--index", str(tmp_path / "index"), *words))
        printed = capsys.readouterr()
        assert (code, printed.err) == (1 if words[0] == "add" else 0, "")
        return printed.out

    hostile_folder(tmp_path / "in")
    added = quipu(tmp_path, "add", str(tmp_path / "in"))
    report = json.loads(here("add", str(tmp_path / "in"), "--json"))
    failed = {Path(document["id"]).name: document["error"] for document in report["failed"]}
    assert added.code == 1
    assert added.peak < MEMORY + 64 * MEGABYTE * MEMORY_A_CHARACTER
    assert {*BAD, "sparse.txt"} <= failed.keys()
    assert all(error.count(".") > 1 for error in failed.values())  # a reason and a remedy
    assert report["n_unchanged"] == len(NAMES) + len(OTHER_ENCODINGS) + len(ODD) - sum(
        name.startswith("odd") for name in failed
    )
    n_skipped = {reason: n for reason, _, n in report["skipped"]}
    assert n_skipped == {"empty": 1, "pipe or device": 1, "symbolic link": 4}
    documents = json.loads(here("docs", "--json"))
    good = [document["id"] for document in documents if document["status"] == "ready"]
    assert len(good) == report["n_unchanged"]
    printed = [here(*words) for words in (("docs",), ("ask", "Where did Alice Kober teach?"), ("search", "Kober"))]
    printed += [here("show", "document", "--", each) for each in good]
    printed += [here("remove", "--yes", "--", *good[::2])]
    assert_harmless([added.out, added.err, *printed])
    assert not any("secret of Linear B" in each for each in printed)
    here("verify")
    left = {document["id"] for document in json.loads(here("docs", "--json"))}
    assert left == {document["id"] for document in documents} - set(good[::2])


def line_of_words(n_characters: int, name_share: float = 0) -> str:
    """Return one line of words that nobody knows; a share of them look like names."""
    chance = random.Random(1)
    letters = "abcdefghiklmnoprstuvw"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5_000)]
    drawn = chance.choices(words, k=n_characters // 6)
    return " ".join(word.title() if chance.random() < name_share else word for word in drawn)[:n_characters]


def line_of_names(n_characters: int) -> str:
    """Return one line in which every tenth word looks like a name: 25 entities and 23 relations in a chunk."""
    return line_of_words(n_characters, name_share=0.1)


def page_of_names(n_characters: int) -> str:
    """Return sentences in which every name is another one."""
    return " ".join(f"Anna{i} Berg{i} met Carl{i} Dorn{i}." for i in range(n_characters // 44))


@pytest.mark.parametrize(
    ("text_of", "n_megabytes", "max_peak"),  # in megabytes
    [(line_of_words, 30, 400), (page_of_names, 2.2, 400), (line_of_names, 10, 900)],
)
def test_a_hostile_text_of_megabytes_is_indexed_in_bounded_memory(
    text_of: Callable[[int], str], n_megabytes: float, max_peak: int, tmp_path: Path, laws_scale: int
) -> None:
    n_characters = round((n_megabytes if laws_scale > 1 else 0.25) * MEGABYTE)  # the whole of it with `make laws`
    (tmp_path / "text.txt").write_text(text_of(n_characters))
    ran = quipu(tmp_path, "add", str(tmp_path / "text.txt"), "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["n_added"]) == (0, 1)
    assert report["n_chunks"] > n_characters / 10_000
    assert ran.peak < (max_peak if laws_scale > 1 else 300) * MEGABYTE
    assert quipu(tmp_path, "verify").code == 0


def test_files_that_change_or_vanish_while_they_are_read_are_whole_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number:03}.txt").write_bytes(TEXT)
    with subprocess.Popen([sys.executable, "-c", MEDDLE], cwd=folder) as meddler:
        try:
            ran = quipu(tmp_path, "add", str(folder), "--json")
            meddler.wait(PATIENCE_S)
        finally:
            meddler.kill()
    report = json.loads(ran.out)
    assert ran.code == (1 if report["failed"] else 0)
    assert all(document["error"] for document in report["failed"])
    again = json.loads(quipu(tmp_path, "add", str(folder), "--json").out)
    assert again["n_added"] + again["n_updated"] + again["n_unchanged"] == 100
    assert quipu(tmp_path, "verify").code == 0
