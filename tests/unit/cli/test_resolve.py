"""`quipu resolve` on a real index."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu import EditKind, EditRequest, sync
from quipu.cli.app import run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run command lines on an index with one pair of duplicates; return the exit code, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Ada Lovelace wrote to Charles Babbage about the Analytical Engine.", id="a.md")
        kb.edits.make(EditRequest(kind=EditKind.CREATE, entities=("AdaLovelace",)))

    def ran(*words: str) -> tuple[int, str, str]:
        code = run(["--index", "kb", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ran


def test_pairs_are_listed_and_nothing_changes(command: Command) -> None:
    code, out, _ = command("resolve")
    assert code == 0
    assert "equal without spaces" in out
    assert len(json.loads(command("history", "--json")[1])["edits"]) == 1
    assert command("resolve", "Charles Babbage")[1] == "No duplicates were found.\n"


def test_a_file_of_decisions_is_applied(command: Command) -> None:
    rows = [{"first": "Ada Lovelace", "second": "AdaLovelace", "decision": "merge", "name": "Ada Lovelace"}]
    Path("d.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert command("resolve", "--decisions", "d.jsonl")[1].startswith("1 pair merged, 0 kept apart.")
    assert command("resolve")[1] == "No duplicates were found.\n"


def test_a_wrong_decision_is_named_before_any_is_applied(command: Command) -> None:
    good = json.dumps({"first": "Ada Lovelace", "second": "AdaLovelace", "decision": "merge"})
    for bad in ("{", '{"first": "Ada"}', '["Ada"]', good.replace("merge", "burn")):
        Path("d.jsonl").write_text(f"{good}\n{bad}\n")
        code, _, err = command("resolve", "--decisions", "d.jsonl")
        assert code == 2
        assert "d.jsonl, line 2: this is no decision." in err
    assert len(json.loads(command("history", "--json")[1])["edits"]) == 1


def test_pairs_are_reviewed_one_by_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["m", "Ada King"])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(answers))
    code, out, err = command("resolve", "--review")
    assert code == 0
    assert "1 of 1, score 0.95: equal without spaces" in err
    assert out.startswith("1 pair merged, 0 kept apart.")
    assert "Ada King" in command("history")[1]


def test_what_is_kept_apart_is_not_shown_again(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.prompt", lambda *_, **__: "d")
    assert command("resolve", "--review")[1].startswith("0 pairs merged, 1 kept apart.")
    assert command("resolve")[1] == "No duplicates were found.\n"


def test_all_pairs_above_a_score_are_merged_on_demand(command: Command) -> None:
    assert command("resolve", "--merge-above", "0.99")[1].startswith("0 pairs merged")
    assert command("resolve", "--merge-above", "0.9")[1].startswith("1 pair merged, 0 kept apart.")
    newest = json.loads(command("history", "--json")[1])["edits"][0]["edit"]
    assert (newest["author"], newest["reason"][:10]) == ("quipu", "score 0.95")
    assert "do not go together" in command("resolve", "--merge-above", "0.9", "--review")[2]
