"""Watching: the draft of an answer on a terminal, and nothing of it in a pipe."""

import io

from rich.console import Console

from quipu.cli.progress import watching
from quipu.model.answer import AnswerPiece


def _terminal(height: int = 24) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=60, height=height, legacy_windows=False)


def _shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pipe_is_not_written_to() -> None:
    console = Console(file=io.StringIO(), width=60)
    with watching(console) as watcher:
        assert watcher is None
    assert _shown(console) == ""


def test_a_terminal_shows_the_strategy_the_time_and_the_text_so_far() -> None:
    console = _terminal()
    now = 10.0
    with watching(console, clock=lambda: now) as watcher:
        assert watcher is not None
        watcher("mix", AnswerPiece(text="Alice Kober taught"))
        watcher("mix", AnswerPiece(text=" classics.\x1b[31m"))
        now = 13.2
    last = _shown(console).rpartition("╭")[2]
    assert "mix · 3 s" in last
    assert "Alice Kober taught classics.\N{REPLACEMENT CHARACTER}[31m" in last


def test_a_terminal_shows_the_stage_until_there_is_text() -> None:
    console = _terminal()
    with watching(console, clock=lambda: 0.0) as watcher:
        assert watcher is not None
        watcher("mix", AnswerPiece(stage="retrieve"))
    assert "searching the index…" in _shown(console).rpartition("╭")[2]


def test_another_strategy_begins_a_new_draft() -> None:
    console = _terminal()
    with watching(console, clock=lambda: 0.0) as watcher:
        assert watcher is not None
        watcher("naive", AnswerPiece(text="First"))
        watcher("mix", AnswerPiece(text="Second"))
    last = _shown(console).rpartition("╭")[2]
    assert "Second" in last
    assert "First" not in last


def test_of_a_long_answer_the_end_is_shown() -> None:
    console = _terminal(height=10)
    with watching(console, clock=lambda: 0.0) as watcher:
        assert watcher is not None
        watcher("mix", AnswerPiece(text="\n".join(f"line {n}" for n in range(100))))
    last = _shown(console).rpartition("╭")[2]
    assert [f"line {n}" in last for n in (95, 96, 97, 98, 99)] == [False, True, True, True, True]
