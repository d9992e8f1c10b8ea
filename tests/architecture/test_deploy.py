"""The files in deploy: their syntax, and that the commands and files they name exist."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from quipu.cli.app import load_command
from tests.architecture.source import PROJECT

DEPLOY = PROJECT / "deploy"


def _check_serve(words: list[str]) -> None:
    """Raise if these are no options of `quipu serve`."""
    command = load_command("serve")
    command.make_context("serve", words[words.index("serve") + 1 :])


def test_the_unit_starts_a_command_that_exists() -> None:
    lines = [line for line in (DEPLOY / "quipu.service").read_text(encoding="utf-8").splitlines() if "=" in line]
    start = next(line for line in lines if line.startswith("ExecStart="))
    _check_serve(shlex.split(start.removeprefix("ExecStart=")))
    assert "NoNewPrivileges=yes" in lines


def test_the_unit_can_be_parsed() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "quipu.service")
    assert parser.sections() == ["Unit", "Service", "Install"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "quipu.service"
    text = (DEPLOY / "quipu.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/quipu/bin/quipu", "/bin/true"), encoding="utf-8")
    report = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False).stderr
    assert not [line for line in report.splitlines() if "quipu.service:" in line and "Unknown" in line]


def test_the_image_copies_files_that_exist_and_runs_without_root() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for name in line.split()[1:-1]:
                assert (PROJECT / name).exists(), name
    assert "USER 10001" in text
    _check_serve(yaml.safe_load(re.findall(r"^CMD (\[.*\])", text, re.MULTILINE)[-1]))


def test_the_compose_file_builds_that_image_and_opens_only_loopback() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["quipu"]
    build = service["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_a_wrong_option_would_be_seen() -> None:
    with pytest.raises(click.UsageError):
        _check_serve(["quipu", "serve", "--nowhere"])
