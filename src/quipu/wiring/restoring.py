"""Restoring and copying: an index from an archive, or from another index. Checking an archive needs no index."""

import asyncio
import shutil
from dataclasses import replace as replace_fields
from pathlib import Path

from quipu.engine.backups import in_megabytes
from quipu.errors import InvalidInput, NotFound
from quipu.model.event import EventSink, ignore_event
from quipu.ports.history import ArchiveSummary, OnBytes
from quipu.settings import Settings
from quipu.stores.relational.archive import ArchiveReader, adopt
from quipu.stores.sqlite.backend import SqliteBackend, remove_database, replace_database
from quipu.text.words import Analyzer
from quipu.wiring import (
    INDEX_FILE,
    PAST_FOLDER,
    TOPOLOGY_FOLDER,
    VECTORS_FOLDER,
    is_in_place,
    make_analyzer,
    make_folder,
    open_store,
    place,
)


async def restore_index(
    file: Path, settings: Settings, *, replace: bool = False, on_event: EventSink = ignore_event
) -> ArchiveSummary:
    """Restore an archive into the index that the settings name, which must not exist unless `replace` is set.

    Raises NotFound for a missing file, InvalidInput where there is an index, Corrupt for an archive that was truncated
    or altered, Mismatch for one of a newer version; then nothing has changed.
    """
    if settings.folder is None:
        raise InvalidInput(
            "An archive is restored into a folder, not into PostgreSQL.",
            remedy="Restore it into a folder, then run `quipu copy`.",
        )
    folder = settings.folder.absolute()
    database = folder / INDEX_FILE
    _check_file(file)
    if database.exists() and not replace:
        raise InvalidInput(
            f"There is an index in {folder}.", remedy="Name another folder with --index, or replace it: --replace"
        )

    def restore() -> ArchiveSummary:
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            summary = restore_database(
                file,
                database,
                make_analyzer(settings),
                busy_timeout_s=settings.busy_timeout_s,
                on_bytes=in_megabytes("restore", on_event),
            )
        except BaseException:
            if is_new:
                folder.rmdir()
            raise
        for name in (
            VECTORS_FOLDER,
            TOPOLOGY_FOLDER,
            PAST_FOLDER,
        ):  # of the earlier index
            shutil.rmtree(folder / name, ignore_errors=True)
        return summary

    return replace_fields(await asyncio.to_thread(restore), file=str(file))


async def copy_index(source: Settings, target: Settings) -> int:
    """Copy an index to where there is none, completely or not at all; return how many rows its tables have.

    Raises NotFound where there is none to copy, InvalidInput where there is one in the other place, and Mismatch where
    the first has another schema: it is only read.
    """
    if not await has_index(source):
        raise NotFound(f"There is no index in {place(source)}.", remedy="Name one: a folder, or postgresql://…")
    if await has_index(target):
        raise InvalidInput(f"There is an index in {place(target)}.", remedy="Name another folder or workspace.")
    if target.folder:
        make_folder(target.folder)
    store, copy = open_store(source), open_store(target)
    try:
        return await store.copy_to(copy)
    finally:
        await store.close()
        await copy.close()


async def has_index(settings: Settings) -> bool:
    """Return whether there is an index where the settings say; nothing is created."""
    store = open_store(settings)
    try:
        return await is_in_place(settings, store) and await store.exists()
    finally:
        await store.close()


def restore_database(
    archive: Path, database: Path, analyzer: Analyzer, *, busy_timeout_s: float, on_bytes: OnBytes
) -> ArchiveSummary:
    """Make a database from an archive in place of an earlier one, or of none.

    The new file is made beside it, and moved in its place once the whole archive was read and its digest is right.
    Raises Corrupt for an archive that was truncated or altered, Busy while another process uses the earlier database;
    then nothing has changed.
    """
    unfinished = database.with_name(f"{database.name}.restoring")
    remove_database(unfinished)
    try:
        with archive.open("rb") as file, unfinished.open("wb") as copy:
            reader = ArchiveReader(file)
            copy.writelines(reader.pieces(on_bytes))
        backend = SqliteBackend(unfinished, busy_timeout_s=busy_timeout_s, is_draft=True)
        try:
            adopt(backend, analyzer)
        finally:
            backend.close()
        replace_database(unfinished, database, busy_timeout_s=busy_timeout_s)
    finally:
        remove_database(unfinished)
    return reader.summary


async def check_archive(file: Path, on_event: EventSink = ignore_event) -> ArchiveSummary:
    """Read a whole archive and return what it holds. Raises Corrupt for one that was truncated or altered."""
    _check_file(file)

    def check() -> ArchiveSummary:
        with file.open("rb") as opened:
            reader = ArchiveReader(opened)
            for _ in reader.pieces(in_megabytes("check", on_event)):
                pass
            return reader.summary

    return replace_fields(await asyncio.to_thread(check), file=str(file))


def _check_file(file: Path) -> None:
    if not file.is_file():
        raise NotFound(f"There is no archive {str(file)!r}.", remedy="`quipu backup FILE` makes one.")
