"""The wheel and the source distribution: both build, and the demo runs from the wheel, away from the source tree."""

import os
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, PROJECT


def _run(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "QUIPU_"))}
    parts = [str(part) for part in command]
    ran = subprocess.run(
        parts, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and the wheel from what it holds."""
    folder = tmp_path_factory.mktemp("distributions")
    _run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder, folder=PROJECT)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    unpacked = next(path for path in folder.iterdir() if path.is_dir())
    _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, folder=unpacked)
    return folder


def test_the_wheel_holds_the_package_and_its_licence(distributions: Path) -> None:
    names = set(zipfile.ZipFile(next(distributions.glob("*.whl"))).namelist())
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {path.relative_to(PACKAGE.parent).as_posix() for path in files} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "benchmarks/", "scripts/")) for name in names)


def test_the_demo_runs_from_the_wheel(distributions: Path, tmp_path: Path) -> None:
    """The dependencies are those of this environment; the package itself comes from the wheel alone."""
    environment = tmp_path / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", environment, folder=tmp_path)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    packages = Path(
        _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip()
    )
    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as wheel:
        wheel.extractall(packages)
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    place = _run(python, "-c", "import quipu; print(quipu.__file__)", folder=tmp_path).strip()
    assert Path(place).is_relative_to(packages)
    printed = _run(python, "-m", "quipu", "--index", "demo", "demo", folder=tmp_path)
    assert "Alice Kober" in printed
