"""The log: counts and warnings under names of the package, and no text of anybody."""

import logging
from pathlib import Path

import pytest

from quipu import sync
from quipu.cli.app import run
from quipu.testing.server import serving

SECRET_TEXT = "Zephyrine Quillfeather buried the amber casket below the sundial."
QUESTION = "Where is the amber casket of Zephyrine Quillfeather?"
KEY = "sk-very-secret-key-0123456789"


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged, from DEBUG up."""
    caplog.set_level(logging.DEBUG, logger="quipu")
    return caplog


def _messages(records: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in records.records if record.levelno == level]


def test_adding_asking_and_removing_log_counts_and_times(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text(SECRET_TEXT, id="casket")
        kb.query(QUESTION, strategy="lexical")
        kb.remove(["casket"])
    messages = "\n".join(_messages(records, logging.INFO))
    assert "added 1 documents, updated 0, unchanged 0, failed 0: 1 chunks" in messages
    assert "answered with lexical: 1 passages, 1 citations, 0 model calls" in messages
    assert "removed 1 documents" in messages
    assert messages.count("refreshed: ") == 2


def test_a_document_that_cannot_be_read_and_skipped_files_are_warnings(
    tmp_path: Path, records: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/empty.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / "docs/photo.xyz").write_bytes(b"??")
    with sync.open(tmp_path / "kb") as kb:
        kb.add(tmp_path / "docs")
    warnings = _messages(records, logging.WARNING)
    assert "document 'docs/empty.pdf' is failed; `quipu docs` says why" in warnings
    assert "skipped 1 files" in warnings


def test_no_key_question_or_text_is_logged(
    tmp_path: Path, records: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIPU_LLM_KEY", KEY)
    with (
        serving() as server,
        sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb,
    ):
        kb.add_text(SECRET_TEXT, id="casket")
        kb.query(QUESTION)
    assert records.records
    log = "\n".join(record.getMessage() for record in records.records if record.name.startswith("quipu"))
    assert [word for word in ("Zephyrine", "casket of", "sundial", KEY) if word in log] == []


def test_verbose_prints_the_log_to_stderr_and_only_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add = ["--index", str(tmp_path / "kb"), "add", "--text", "Anna sold the press."]
    assert run(["-v", *add]) == 0
    captured = capsys.readouterr()
    assert "INFO quipu.engine.ingestion: added 1 documents" in captured.err
    assert "added 1 documents" not in captured.out
    assert run(["--index", str(tmp_path / "kb"), "ask", "Who sold the press?"]) == 0
    assert "INFO" not in capsys.readouterr().err
