"""The project around the code: pins, commands named in messages, the docs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import quipu
from quipu.cli.app import COMMANDS
from quipu.retrieve import STRATEGIES
from tests.architecture.source import PACKAGE, PROJECT, modules

PAGES = sorted([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md")])
COMMAND_NAMES = {name for section in COMMANDS.values() for name in section}


def _pinned(name: str) -> set[str]:
    lines = (PROJECT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    return {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}


def _project() -> dict[str, dict[str, list[str]]]:
    parsed: dict[str, dict[str, list[str]]] = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return parsed


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[;]", requirement)[0].strip().lower() for requirement in requirements}


def test_every_dependency_is_pinned() -> None:
    assert _names(_project()["project"]["dependencies"]) <= _pinned("base.txt")
    assert _names(_project()["dependency-groups"]["dev"]) <= _pinned("dev.txt")
    assert _names(_project()["build-system"]["requires"]) <= _pinned("dev.txt")


@pytest.mark.parametrize("name", ["base.txt", "dev.txt", "weights.txt"])
def test_pins_hold_versions_and_no_addresses(name: str) -> None:
    lines = (PROJECT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith(("#", "-r "))]
    assert pins
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.]+", line)] == []


def test_the_version_is_the_same_everywhere() -> None:
    assert _project()["project"]["version"] == quipu.__version__  # type: ignore[comparison-overlap]


def test_every_command_a_message_names_exists() -> None:
    named = {name for module in modules() for name in re.findall(r"`quipu ([a-z]+)", module.text)}
    assert named - COMMAND_NAMES - {"command"} == set()


def test_reference_pages_say_what_the_code_says() -> None:
    script = PROJECT / "scripts" / "reference.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout}\nWrite them again with `make reference`."


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_in_the_docs_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_decision_record_is_in_the_list() -> None:
    folder = PROJECT / "docs" / "adr"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in sorted(folder.glob("[0-9]*.md")) if f"({page.name})" not in listed] == []


def test_the_architecture_page_shows_every_package_and_no_other() -> None:
    page = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(re.findall(r"^(\w+)/ ", page, re.MULTILINE)) == packages


def test_the_guide_to_strategies_says_when_to_choose_each() -> None:
    page = (PROJECT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert set(STRATEGIES) <= set(re.findall(r"`(\w+)`", page.partition("## ")[0]))


def test_a_strategys_file_is_found_by_its_name() -> None:
    files = {path.stem.strip("_") for path in (PACKAGE / "retrieve").glob("*.py")}
    assert set(STRATEGIES) <= files


def test_the_workflow_runs_everything_on_linux_and_the_tests_elsewhere() -> None:
    jobs = yaml.safe_load((PROJECT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands == {"linux": [".ci/run"], "desktop": ["make test PYTHON=python"]}
    assert jobs["desktop"]["strategy"]["matrix"]["os"] == ["macos-latest", "windows-latest"]
    assert {tuple(job["strategy"]["matrix"]["python"]) for job in jobs.values()} == {("3.11", "3.12", "3.13", "3.14")}
