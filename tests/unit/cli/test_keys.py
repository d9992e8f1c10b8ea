"""`quipu keys`: create, list and revoke."""

import json
from pathlib import Path

import pytest

from quipu.cli.app import run


def test_a_key_is_shown_once_then_listed_then_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["--index", str(tmp_path)]
    assert run([*shared, "--json", "keys", "create", "laptop", "--permission", "write"]) == 0
    new = json.loads(capsys.readouterr().out)
    assert run([*shared, "keys", "list"]) == 0
    listing = capsys.readouterr().out
    assert new["key"]["id"] in listing
    assert "write" in listing
    assert new["text"].rpartition("_")[2] not in listing
    assert new["key"]["digest"] not in listing
    assert run([*shared, "keys", "revoke", new["key"]["id"]]) == 0
    capsys.readouterr()
    assert run([*shared, "--json", "keys", "list"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_server_for_other_machines_needs_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--index", str(tmp_path / "kb"), "serve", "--host", "0.0.0.0"]) == 2
    assert "quipu keys create" in capsys.readouterr().err


def test_an_index_and_a_root_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["serve"], ["keys", "list"]):
        assert run(["--index", str(tmp_path), *command, "--root", str(tmp_path)]) == 2
        assert "not both" in capsys.readouterr().err
