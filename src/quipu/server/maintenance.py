"""Maintenance: estimates, derivations, settings, checks and the dump of a workspace."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from quipu.engine import Quipu
from quipu.ingest.sources import text_source
from quipu.model.derivation import DerivationState, RepairResult
from quipu.model.document import EarlierVersion, PurgeResult
from quipu.model.tuning import TuningResult
from quipu.model.usage import Estimate
from quipu.server.access import Permission
from quipu.server.job_runners import ADD, JobStatus
from quipu.server.jobs import start_job
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE
from quipu.server.wire import download
from quipu.settings import EffectiveSetting, effective

_ARCHIVE_TYPE = "application/octet-stream"
_BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPage:
    """A page of earlier versions of documents; `cursor` asks for the next one, "" if this is the last."""

    versions: tuple[EarlierVersion, ...]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRows:
    """How many rows a command changed."""

    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check found, in words; nothing means that the index is sound."""

    differences: tuple[str, ...]


class EstimatedText(WireBody):
    """A text whose cost is estimated; nothing is added. The model reads `n_sample` chunks of it, which is paid for."""

    text: str
    media_type: str = "text/markdown"
    n_sample: int = Field(0, ge=0, le=100)


class TuningRequest(WireBody):
    """How many chunks of the index a model reads to suggest an ontology; with `dry_run`, none."""

    n_sample: int = Field(12, ge=1, le=1_000)
    n_compare: int = Field(2, ge=0, le=1_000)
    dry_run: bool = False


@operation("POST", f"{WORKSPACE}/estimate", Permission.WRITE)
async def estimate(kb: Quipu, body: EstimatedText) -> Estimate:
    """Return what adding a text would cost with a language model: calls, tokens, money and time, each with a range."""
    return await kb.estimate(text_source(body.text, media_type=body.media_type), n_sample=body.n_sample)


@operation("POST", f"{WORKSPACE}/tune", Permission.WRITE)
async def tune(kb: Quipu, body: TuningRequest) -> TuningResult:
    """Suggest an ontology for the documents of the index."""
    return await kb.tune(**body.model_dump())


@operation("POST", f"{WORKSPACE}/resume", Permission.WRITE, status=202, is_idempotent=True)
async def resume(kb: Quipu, call: Call) -> JobStatus:
    """Work through the queue, as a job: for example after the budget was raised."""
    return await start_job(kb, call, ADD, ())


@operation("GET", f"{WORKSPACE}/plan", Permission.READ)
async def plan(kb: Quipu, *, name: tuple[str, ...] | str = (), rebuild: bool = False) -> tuple[DerivationState, ...]:
    """Return what a refresh of these derivations would compute, and its cost; without names, of all that exist."""
    return await kb.plan((name,) if isinstance(name, str) else name, rebuild=rebuild)


@operation("DELETE", f"{WORKSPACE}/derivations/{{name}}", Permission.ADMIN)
async def drop_derivation(kb: Quipu, name: str) -> tuple[str, ...]:
    """Drop a derivation and those that need it; return the names of what was dropped."""
    return await kb.drop([name])


@operation("POST", f"{WORKSPACE}/reembed", Permission.ADMIN)
async def reembed(kb: Quipu) -> CountedRows:
    """Compute every vector with the embedder of the settings; return how many."""
    return CountedRows(n=await kb.reembed())


@operation("POST", f"{WORKSPACE}/purge", Permission.ADMIN)
async def purge(
    kb: Quipu,
    *,
    before: Annotated[str, Field(description="Of earlier versions, only those that ended before this date.")] = "",
    dry_run: bool = False,
) -> PurgeResult:
    """Delete earlier versions of documents, and cached replies that no live document needs; `dry_run` only lists."""
    return await kb.purge(before=before, dry_run=dry_run)


@operation("POST", f"{WORKSPACE}/verify", Permission.ADMIN)
async def verify(kb: Quipu, *, files_only: bool = False) -> CheckResult:
    """Recompute every fold, link and index from the facts; with `files_only`, only look for damage in the files."""
    return CheckResult(differences=tuple(await (kb.damage() if files_only else kb.verify())))


@operation("POST", f"{WORKSPACE}/repair", Permission.ADMIN)
async def repair(kb: Quipu, *, accept_losses: bool = False) -> RepairResult:
    """Build everything again that is derived from facts; if facts are damaged or missing, only say which."""
    return await kb.repair(accept_losses=accept_losses)


@operation("GET", f"{WORKSPACE}/versions", Permission.READ)
async def list_versions(
    kb: Quipu, *, document: str = "", k: Annotated[int, Field(ge=1, le=1_000)] = 100, cursor: str = ""
) -> VersionPage:
    """List page by page the earlier versions that the setting `history` keeps, of one document or of all.

    They are ordered by document, then the oldest first.
    """
    versions = await kb.earlier_versions([document] if document else None, k=k, after=cursor)
    return VersionPage(versions=tuple(versions), cursor=versions[-1].cursor if len(versions) == k else "")


@operation("GET", f"{WORKSPACE}/dump", Permission.ADMIN, media_type="application/jsonl")
async def dump(kb: Quipu) -> Response:
    """Return the canonical state as JSON lines: equal documents give equal bytes."""
    return StreamingResponse(_dump_lines(kb), 200, None, "application/jsonl")


@operation("GET", f"{WORKSPACE}/backup", Permission.ADMIN, media_type=_ARCHIVE_TYPE)
async def download_backup(kb: Quipu) -> Response:
    """Download everything that the index holds as one archive, as of this moment; `quipu restore FILE` reads it."""
    return await download(_archive_bytes(kb), _ARCHIVE_TYPE, 'attachment; filename="backup.quipu"')


async def _archive_bytes(kb: Quipu) -> AsyncGenerator[bytes, None]:
    with TemporaryDirectory(prefix="quipu-") as folder:
        file = Path(folder) / "backup.quipu"
        await kb.backup(file)
        with file.open("rb") as archive:
            while piece := await asyncio.to_thread(archive.read, _BYTES_AT_ONCE):
                yield piece


async def _dump_lines(kb: Quipu) -> AsyncIterator[bytes]:
    async with aclosing(kb.dump()) as lines:
        async for line in lines:
            yield f"{line}\n".encode()


@operation("GET", f"{WORKSPACE}/settings", Permission.ADMIN)
async def list_settings(
    call: Call, *, group: Annotated[str, Field(description="Only options of this group.")] = ""
) -> list[EffectiveSetting]:
    """List the settings in force and their origin, never a key."""
    settings = effective(call.server.workspaces.settings(call.workspace))
    return [_without_path(setting) for setting in settings if not group or group in setting.group]


def _without_path(setting: EffectiveSetting) -> EffectiveSetting:
    """Return a setting whose value and origin name files without their folders."""
    value = setting.value.name if isinstance(setting.value, Path) else setting.value
    return replace(setting, value=value, origin=Path(setting.origin).name)


OPERATIONS = operations_of(
    list_versions,
    estimate,
    tune,
    resume,
    plan,
    drop_derivation,
    reembed,
    purge,
    verify,
    repair,
    dump,
    download_backup,
    list_settings,
)
