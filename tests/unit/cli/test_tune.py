"""`quipu tune`: what it asks for, what it writes where, and what it shows."""

from dataclasses import replace
from pathlib import Path

import pytest

from quipu.cli.errors import FAILURE
from quipu.model.tuning import ExtractionOutcome
from tests.unit.cli.conftest import TUNING, Cli, FakeEngine

DEFAULTS = {"root": None, "n_sample": 12, "n_compare": 2, "dry_run": False}


def test_what_is_asked_for_is_handed_over(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert cli("tune", "notes").code == 0
    assert engine.calls == [("tune", (Path("notes"),), DEFAULTS)] and engine.may_create
    assert cli("tune", "--sample", "5", "--compare", "0", "--root", "notes", "--force").code == 0
    asked = {"root": Path("notes"), "n_sample": 5, "n_compare": 0, "dry_run": False}
    assert engine.calls[1] == ("tune", (), asked)
    assert not engine.may_create


def test_the_file_is_written_and_the_setting_that_names_it_shown(cli: Cli, tmp_path: Path) -> None:
    out = cli("tune").out
    assert (tmp_path / "ontology.yaml").read_text(encoding="utf-8") == TUNING.file
    assert "ontology.yaml is written." in out and 'ontology = "ontology.yaml"' in out
    assert "`quipu add --reread` reads them again with this ontology" in " ".join(out.split())


def test_the_file_stands_beside_the_settings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "quipu.toml").write_text("top_k = 7\n", encoding="utf-8")
    out = cli("--index", "kb/index", "tune").out
    assert (tmp_path / "kb" / "ontology.yaml").is_file() and not (tmp_path / "ontology.yaml").exists()
    assert 'ontology = "ontology.yaml"' in out
    (tmp_path / "own.toml").write_text("", encoding="utf-8")
    cli("tune", "--output", "harbour.yml", env={"QUIPU_CONFIG": "own.toml"})
    assert (tmp_path / "harbour.yml").is_file()


def test_a_file_elsewhere_is_named_in_full(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "quipu.toml").write_text("", encoding="utf-8")
    ran = cli("--index", "kb/index", "tune", "--output", "mine.yaml", "--json")
    assert ran.json["setting"] == f'ontology = "{(tmp_path / "mine.yaml").as_posix()}"'


def test_a_file_that_is_there_is_refused_before_anything_is_asked_and_overwritten_if_forced(
    cli: Cli, engine: FakeEngine, tmp_path: Path
) -> None:
    file = tmp_path / "ontology.yaml"
    file.write_text("mine", encoding="utf-8")
    ran = cli("tune")
    assert ran.code == 2 and "--force" in ran.err
    assert engine.calls == [] and file.read_text(encoding="utf-8") == "mine"
    assert cli("tune", "--force").code == 0
    assert file.read_text(encoding="utf-8") == TUNING.file
    assert [each.name for each in tmp_path.iterdir()] == ["ontology.yaml"]


def test_a_file_that_comes_meanwhile_stays(
    cli: Cli, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = engine.tune

    async def slow(*sources: Path, **options: object) -> object:
        (tmp_path / "ontology.yaml").write_text("mine", encoding="utf-8")
        return await asked(*sources, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "tune", slow)
    ran = cli("tune")
    assert ran.code == FAILURE and "ontology.yaml" in ran.err
    assert (tmp_path / "ontology.yaml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--output", "o.toml"), "its name must end with .yaml or .yml"),
        (("--output", "absent/o.yaml"), "There is no folder 'absent'"),
        (("absent.md",), "There is no file or folder 'absent.md'"),
        (("--sample", "0"), "0 is not in the range"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, engine: FakeEngine, words: tuple[str, ...], says: str) -> None:
    ran = cli("tune", *words)
    assert ran.code == 2 and says in ran.err
    assert engine.calls == []


def test_a_dry_run_tells_the_cost_and_writes_nothing(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "ontology.yaml").write_text("mine", encoding="utf-8")
    ran = cli("tune", "--dry-run")
    assert ran.code == 0
    figures = {
        line.split()[0]: line.split()[1:] for line in ran.out.splitlines() if line.startswith(("calls", "money"))
    }
    assert figures == {"calls": ["10", "7", "14"], "money,": ["USD", "0.0020", "0.0010", "1.50"]}
    assert "A sample of 1 chunk, and 1 more for the comparison, of 40 in 3 documents (1 cannot be read)." in ran.out
    assert (tmp_path / "ontology.yaml").read_text(encoding="utf-8") == "mine"


def test_the_differences_are_shown_side_by_side(cli: Cli) -> None:
    lines = [" ".join(line.split()) for line in cli("tune").out.splitlines()]
    for line in (
        "Suggested by the language model openai/small.",
        "The type 'x' was left out: it has no usable name.",
        "Person a human being 1,234",
        "taught at Person any held lessons in",
        "1 example, from the documents.",
        "+new",
        "Linear B Other linear b Script",
        "Ann Person –",
        "– Pylos Place",
        "Before: 2 entities, 0 relations. Tuned: 2 entities, 0 relations.",
        "Only before: 1. Only tuned: 1. With another type: 1.",
    ):
        assert line in lines, line
    assert any(line.startswith("3 calls: ") for line in lines)


def test_text_of_documents_does_not_steer_the_terminal(cli: Cli) -> None:
    assert "\x1b" not in cli("tune").out


def test_a_reading_that_failed_says_why(cli: Cli, engine: FakeEngine) -> None:
    failed = replace(TUNING.comparisons[0], after=ExtractionOutcome(error="It named nothing."))
    engine.tuning = replace(TUNING, comparisons=(failed,))
    assert "tuned: It named nothing." in cli("tune").out


def test_work_that_was_stopped_is_written_and_ends_with_1(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    engine.tuning = replace(TUNING, stopped="The budget of 3 calls is used up.", comparisons=())
    ran = cli("tune")
    assert ran.code == 1
    assert "Stopped: The budget of 3 calls is used up." in ran.out
    assert (tmp_path / "ontology.yaml").is_file()


def test_json_has_all_of_it(cli: Cli) -> None:
    said = cli("tune", "--json").json
    assert (said["path"], said["setting"]) == ("ontology.yaml", 'ontology = "ontology.yaml"')
    assert said["report"]["ontology"]["types"][0] == {"name": "Person", "description": "a human being", "aliases": []}
    assert said["report"]["comparisons"][0]["only_after"] == ["Pylos"]


@pytest.mark.parametrize("words", [(), ("--no-model",)])
def test_budget_and_model_are_settings(cli: Cli, engine: FakeEngine, words: tuple[str, ...]) -> None:
    cli("tune", "--budget", "300 calls", *words, env={"QUIPU_LLM": "openai/small"})
    assert engine.settings is not None
    assert engine.settings.spending.calls == 300
    assert engine.settings.names_model is not bool(words)
