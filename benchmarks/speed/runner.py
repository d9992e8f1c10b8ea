"""Runner: starts each step in a process of its own, shows how far it is, and collects what it measured."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress, TaskID

from benchmarks.speed.figures import OURS, PEER, Measurement
from benchmarks.speed.machine import ROOT
from benchmarks.speed.process import MARK
from benchmarks.speed.workload import DIMENSION
from quipu.bench.peers import KEPT_ENVIRONMENT, PACKAGE, VERSION, install_lightrag, last_words
from quipu.errors import Unavailable
from quipu.settings.sources import environment_of


class Failed(Exception):
    """A step did not end well; the message says which, and its last words."""


@dataclass(slots=True)
class Runner:
    """Runs steps, and keeps what they measured. Indexes, logs and environments are in `folder`.

    `notes` say what was left out, and why.
    """

    folder: Path
    bar: Progress
    measured: list[Measurement] = field(default_factory=list)
    peer_versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _peer_python: Path | None = None
    _task: TaskID | None = None

    def say(self, text: str) -> None:
        """Show what is being done."""
        if self._task is None:
            self._task = self.bar.add_task(text)
        self.bar.update(self._task, description=text)

    def ours(self, step: str, texts: Path, n_chunks: int) -> None:
        """Run a step with Quipu. Raises Failed where it does not end well."""
        command = [sys.executable, "-m", "benchmarks.speed.ours", step, str(texts), self._index(OURS, n_chunks)]
        self._run([*command, str(n_chunks)], f"Quipu, {n_chunks:,} chunks: {step}", os.environ)

    def peer(self, step: str, texts: Path, n_chunks: int) -> None:
        """Run a step with LightRAG, where it is installed; where the step fails, leave LightRAG out from here on."""
        if self._peer_python is None:
            return
        command = [str(self._peer_python), "-m", "benchmarks.speed.lightrag_driver", step, str(texts)]
        environment = environment_of(KEPT_ENVIRONMENT)
        about = f"LightRAG, {n_chunks:,} chunks: {step}" if n_chunks else f"LightRAG: {step}"
        try:
            self._run([*command, self._index(PEER, n_chunks), str(n_chunks)], about, environment)
        except Failed as error:
            self._peer_python = None
            self.notes.append(f"LightRAG was left out from here on: {error}")

    def install_peer(self, folder: Path) -> None:
        """Make LightRAG's environment where it is not there yet; note the reason where that cannot be done."""
        self.say(f"installing LightRAG {VERSION} in an environment of its own")
        try:
            python = install_lightrag(folder)
            listing = _output([str(python), "-m", "pip", "--disable-pip-version-check", "list", "--format", "json"])
        except (Unavailable, OSError, subprocess.CalledProcessError) as error:
            self.notes.append(f"LightRAG was left out: {getattr(error, 'message', last_words(str(error)))}")
            return
        installed = {package["name"]: package["version"] for package in json.loads(listing)}
        self.peer_versions.update({name: installed[name] for name in (PACKAGE, "nano-vectordb", "networkx")})
        self._peer_python = python

    def vectors(self, sizes: Sequence[int]) -> None:
        """Run the benchmark of the vector index at these sizes. Raises Failed where it does not end well."""
        kept = self.folder / "vectors.json"
        options = ["--sizes", *map(str, sizes), "--dimensions", str(DIMENSION), "--json", str(kept)]
        self._run([sys.executable, "benchmarks/vectors.py", *options], "Quipu: vectors", os.environ)
        self.measured += [of_vectors(one["n"], one["figures"]) for one in json.loads(kept.read_text("utf-8"))]

    def clean(self, n_chunks: int) -> None:
        """Delete the indexes of a size."""
        for system in (OURS, PEER):
            shutil.rmtree(self._index(system, n_chunks), ignore_errors=True)

    def _index(self, system: str, n_chunks: int) -> str:
        return str(self.folder / f"{system}-{n_chunks}")

    def _run(self, command: Sequence[str], about: str, environment: Mapping[str, str]) -> None:
        """Keep what a process measures. Raises Failed where it does not end well."""
        self.say(about)
        log = self.folder / "last.log"
        with (
            log.open("w", encoding="utf-8") as errors,
            subprocess.Popen(
                command, cwd=ROOT, env=dict(environment), stdout=subprocess.PIPE, stderr=errors, text=True
            ) as running,
        ):
            for message in messages(running.stdout or ()):
                if isinstance(message, Measurement):
                    self.measured.append(message)
                else:
                    self.say(f"{about}, {message}")
        if running.returncode:
            raise Failed(f"{about} failed: {last_words(log.read_text('utf-8'))}")
        self.bar.console.print(f"[dim]{about}: done[/dim]")


def of_vectors(n: int, figures: Sequence[float]) -> Measurement:
    """Return a row of benchmarks/vectors.py in seconds and bytes."""
    _, open_ms, _, query_ms, recall, _, _, _, seen_ms, written_ms, private_mb, mapped_mb = figures
    values = {
        "query_s": query_ms / 1e3,
        "recall": recall,
        "add_s": (seen_ms + written_ms) / 1e3,
        "open_s": open_ms / 1e3,
        "memory_bytes": (private_mb + mapped_mb) * 1e6,
    }
    return Measurement(system=OURS, step="vectors", n_chunks=n, values=values)


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def messages(lines: Iterable[str]) -> Iterator[Measurement | str]:
    """Yield measurements, and in words how far the work is."""
    for line in lines:
        if line.startswith(MARK):
            said = json.loads(line.removeprefix(MARK))
            yield Measurement(**said) if "step" in said else f"{said['done']:,} of {said['total']:,}"
