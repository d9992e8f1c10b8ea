"""Output says who read the documents of an index, who would now, and how to have them read again."""

from dataclasses import replace

import pytest

from quipu.cli.results import extractor_history
from quipu.model.results import AddResult
from tests.unit.cli.conftest import ESTIMATE, Cli, FakeEngine

MODEL, RULES = "language model openai/gpt-4.1-mini", "local rules, no language model"
NOW = f"local/5 ({RULES})"


def _said(out: str) -> str:
    return " ".join(out.split())


def test_add_says_what_was_left_as_it_was_read(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(n_unchanged=60, n_other_extractor=60, other_extractors=(MODEL,), extractor=RULES)
    said = _said(cli("--index", "kb", "add", "--text", "x").out)
    assert "0 documents added, 0 updated, 60 unchanged." in said
    assert f"60 of them were read by {MODEL}; `quipu --index kb add --reread` reads them again with" in said
    assert f"the current settings: {RULES}." in said
    told = cli("add", "--text", "x", "--json").json
    assert (told["n_other_extractor"], told["other_extractors"]) == (60, [MODEL])


def test_the_same_model_with_other_settings_is_told_apart(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(n_unchanged=1, n_other_extractor=1, other_extractors=(MODEL, RULES), extractor=MODEL)
    said = _said(cli("add", "--text", "x").out)
    assert f"1 of them was read by {MODEL} with other settings and {RULES}; `quipu add --reread` reads it again" in said


def test_a_dry_run_says_the_same(cli: Cli, engine: FakeEngine) -> None:
    engine.estimated = replace(ESTIMATE, n_other_extractor=1, other_extractors=(MODEL,), extractor=RULES)
    assert f"1 of them was read by {MODEL}; `quipu add --reread`" in _said(cli("add", "--text", "x", "--dry-run").out)


def test_whether_to_read_again_is_handed_over(cli: Cli, engine: FakeEngine) -> None:
    for words in ((), ("--dry-run",)):
        assert cli("add", "--text", "x", *words).code == 0
        assert not engine.rereads
        assert cli("add", "--text", "x", "--reread", *words).code == 0
        assert engine.rereads


def test_who_read_the_others_stands_beside_who_read_these(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(
        n_updated=1, n_chunks=1, n_extracted=1, extractor=RULES, extractors=((MODEL, 2), (RULES, 1))
    )
    assert f"Read by: {RULES} (others in this index were read by {MODEL})." in _said(cli("add", "--text", "x").out)


@pytest.mark.parametrize(
    ("readers", "told"),
    [
        ((), f"to be read by {NOW}"),
        (((RULES, 3),), f"read by {RULES}"),
        (((MODEL, 3),), f"read by {MODEL}; current setting: {NOW}"),
        (((MODEL, 1), (RULES, 2)), f"read by {RULES} (2) and {MODEL} (1); current setting: {NOW}"),
        ((("", 3),), f"read by a version of Quipu that did not note its extractor; current setting: {NOW}"),
    ],
)
def test_a_history_names_those_who_read_and_who_would_now(readers: tuple[tuple[str, int], ...], told: str) -> None:
    assert extractor_history(readers, NOW) == told


def test_status_tells_the_history(cli: Cli, engine: FakeEngine) -> None:
    engine.readers = ((MODEL, 2),)
    assert f"read by {MODEL}; current setting: {NOW}" in _said(cli("status").out)
    assert cli("status", "--json").json["extractors"] == [[MODEL, 2]]
