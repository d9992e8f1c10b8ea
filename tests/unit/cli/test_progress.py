"""Progress: bars on a terminal, nothing in a pipe."""

import io

import click
import pytest
from rich.console import Console

from quipu.cli import progress as module
from quipu.cli.progress import progress
from quipu.model.event import DocumentDone, Progress, Spending


def _drawn(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, is_quiet: bool = False, spent: Spending | None = None
) -> str:
    """Return what the bars drew; the console is replaced, as only its kind of stream differs between the cases."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=is_terminal, width=100, color_system=None)
    monkeypatch.setattr(module, "stderr", lambda: console)
    with click.Context(click.Command("add")), progress(is_quiet=is_quiet) as on_event:
        on_event(Progress(stage="read", n_done=3, n_total=3))
        on_event(Progress(stage="extract", n_done=1, n_total=2, detail="a [b]\nc"))
        on_event(DocumentDone(document_id="a.md", status="ready"))
        if spent is not None:
            on_event(Progress(stage="extract", n_done=2, n_total=2, spent=spent))
    return stream.getvalue()


def test_each_stage_has_a_bar_with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _drawn(monkeypatch, is_terminal=True)
    assert "read" in drawn and "3/3" in drawn
    assert "extract" in drawn and "1/2" in drawn and "a [b] c" in drawn


def test_documents_done_are_counted_against_those_read(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _drawn(monkeypatch, is_terminal=True)
    assert "publish" in drawn and "1/3" in drawn


def test_tokens_and_money_are_shown_beside_the_bar_of_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _drawn(monkeypatch, is_terminal=True, spent=Spending(n_calls=2, n_tokens=3_210, cost=1_200))
    (line,) = [line for line in drawn.splitlines()[-4:] if "2/2" in line]
    assert "3,210 tokens, 0.0012 USD" in line
    assert "tokens" not in _drawn(monkeypatch, is_terminal=True)


def test_nothing_is_drawn_in_a_pipe_or_if_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _drawn(monkeypatch, is_terminal=False) == ""
    assert _drawn(monkeypatch, is_terminal=True, is_quiet=True) == ""
