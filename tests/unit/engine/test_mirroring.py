"""Mirrors: the index follows a folder, reads only what changed, and removes nothing that it did not bring."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.engine.mirroring import IGNORE_FILE, STATE_FILE
from quipu.errors import InvalidInput, NotFound
from quipu.ingest import sources
from quipu.model.edit import EditKind, EditRequest
from tests.laws.world import engine

OLD_NS = 1_600_000_000 * 10**9


def write(file: Path, text: str) -> None:
    """Write a file that changed long ago."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, ns=(OLD_NS, OLD_NS + len(text)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with three files, whose times are trusted at once."""
    monkeypatch.setattr("quipu.engine.mirroring._RACY_NS", 0)
    for name in ("a", "b", "sub/c"):
        write(tmp_path / "notes" / f"{name}.md", f"Keeper {name} Olsen tends the lamp of Vardø.")
    return tmp_path / "notes"


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    """Return an empty engine beside the folder."""
    async with engine(tmp_path / "kb") as kb:
        yield kb


async def ids(kb: Quipu) -> list[str]:
    """Return the documents of the index."""
    return [document.id for document in await kb.documents()]


async def test_the_index_becomes_equal_to_the_folder(kb: Quipu, folder: Path) -> None:
    first = await kb.mirror(folder)
    assert first.added is not None
    assert (first.added.n_added, first.new) == (3, ("notes/a.md", "notes/b.md", "notes/sub/c.md"))
    write(folder / "a.md", "Keeper a was replaced by Solveig Hansen.")
    write(folder / "d.md", "Keeper d Olsen is new.")
    (folder / "b.md").unlink()
    second = await kb.mirror(folder)
    assert (second.new, second.changed, second.removed) == (("notes/d.md",), ("notes/a.md",), ("notes/b.md",))
    assert await ids(kb) == ["notes/a.md", "notes/d.md", "notes/sub/c.md"]
    assert "Solveig Hansen" in await kb.text("notes/a.md")
    assert await kb.verify() == []


async def test_unchanged_files_are_not_read(kb: Quipu, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await kb.mirror(folder)
    reads: list[Path] = []
    read_bytes = sources._read_bytes

    def counted(path: Path, max_bytes: int) -> bytes:
        reads.append(path)
        return read_bytes(path, max_bytes)

    monkeypatch.setattr(sources, "_read_bytes", counted)
    assert (await kb.mirror(folder)).n_unchanged == 3
    assert reads == []
    write(folder / "a.md.meta.json", json.dumps({"year": 1900}))
    await kb.mirror(folder)
    assert folder / "a.md" in reads  # its metadata is new
    assert (await kb.document("notes/a.md")).document.metadata["year"] == 1900


async def test_a_file_that_changed_a_moment_ago_is_read_again(
    kb: Quipu, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.engine.mirroring._RACY_NS", 10**18)
    await kb.mirror(folder)
    assert (await kb.mirror(folder)).n_unchanged == 0


async def test_a_moved_file_is_a_moved_document(kb: Quipu, folder: Path) -> None:
    await kb.mirror(folder)
    (folder / "a.md").rename(folder / "sub" / "a.md")
    result = await kb.mirror(folder)
    assert result.renamed == (("notes/a.md", "notes/sub/a.md"),)
    assert result.added is not None
    assert (result.added.n_extracted, result.added.n_reused) == (0, 1)  # what was read of it is still there
    assert await ids(kb) == ["notes/b.md", "notes/sub/a.md", "notes/sub/c.md"]


async def test_a_split_follows_a_moved_file(kb: Quipu, folder: Path) -> None:
    for name in ("a", "b"):
        write(folder / f"{name}.md", f"IBM is a journal. IBM appears in Boston. This is copy {name}.")
    await kb.mirror(folder)
    split = EditRequest(kind=EditKind.SPLIT, entities=["IBM"], name="IBM (journal)", documents=["notes/a.md"])
    made = await kb.edits.make(split)
    (folder / "a.md").rename(folder / "sub" / "journal.md")
    assert (await kb.mirror(folder, dry_run=True)).renamed
    assert (await kb.edits.edit(made.id)).edit.documents == ("notes/a.md",)
    await kb.mirror(folder)
    followed = await kb.edits.edit(made.id)
    assert (followed.edit.documents, followed.has_effect) == (("notes/sub/journal.md",), True)
    assert {chunk.document_id for chunk, _ in (await kb.entity("IBM (journal)")).chunks} == {"notes/sub/journal.md"}
    assert await kb.verify() == []
    await kb.edits.undo([made.id])
    assert (await kb.entity("IBM")).entity.n_chunks == 2


async def test_a_folder_that_was_moved_as_a_whole_is_no_removal(kb: Quipu, folder: Path) -> None:
    for n in range(20):
        write(folder / "many" / f"{n}.md", f"Keeper {n} Hansen tends lamp {n}.")
    await kb.mirror(folder)
    (folder / "many").rename(folder / "moved")
    assert len((await kb.mirror(folder)).renamed) == 20


async def test_a_dry_run_tells_what_would_change_and_changes_nothing(kb: Quipu, folder: Path) -> None:
    await kb.mirror(folder)
    before = [line async for line in kb.dump()]
    write(folder / "a.md", "Keeper a was replaced.")
    (folder / "b.md").rename(folder / "e.md")
    os.utime(folder / "sub" / "c.md")
    plan = await kb.mirror(folder, dry_run=True)
    assert plan.added is None
    assert (plan.changed, plan.renamed) == (("notes/a.md",), (("notes/b.md", "notes/e.md"),))  # c was only touched
    assert [line async for line in kb.dump()] == before
    assert "notes/e.md" not in json.loads((kb._components.path / STATE_FILE).read_text())[str(folder)]["files"]


async def test_files_that_the_ignore_file_names_are_left_out(kb: Quipu, folder: Path) -> None:
    write(folder / IGNORE_FILE, "# drafts\n*.draft.md\n/sub/*\n!/sub/c.md\nold/\n")
    for name in ("x.draft.md", "sub/y.md", "old/z.md", "kept.md"):
        write(folder / name, f"Keeper of {name} Olsen.")
    await kb.mirror(folder)
    assert await ids(kb) == ["notes/a.md", "notes/b.md", "notes/kept.md", "notes/sub/c.md"]
    write(folder / "sub" / IGNORE_FILE, "c.md\n")
    assert (await kb.mirror(folder)).removed == ("notes/sub/c.md",)


async def test_documents_of_others_stay(kb: Quipu, folder: Path) -> None:
    await kb.add_text("Ada Lovelace wrote to Charles Babbage.", id="notes/letter")
    write(folder.parent / "other" / "o.md", "Keeper o Olsen.")
    await kb.add(folder.parent / "other", folder / "a.md")
    await kb.mirror(folder)
    (folder / "a.md").unlink()  # added before, but the mirror has seen it since
    assert (await kb.mirror(folder)).removed == ("notes/a.md",)
    assert await ids(kb) == ["notes/b.md", "notes/letter", "notes/sub/c.md", "other/o.md"]


async def test_a_folder_that_looks_empty_removes_nothing(kb: Quipu, folder: Path) -> None:
    await kb.mirror(folder)
    for name in ("a.md", "b.md", "sub/c.md"):
        (folder / name).unlink()
    with pytest.raises(InvalidInput, match="3 documents of 3 would be removed"):
        await kb.mirror(folder)
    assert len(await ids(kb)) == 3
    await kb.mirror(folder, allow_removals=True)
    assert await ids(kb) == []


async def test_most_files_of_a_large_folder_are_removed_on_demand_only(kb: Quipu, folder: Path) -> None:
    for n in range(20):
        write(folder / f"{n}.md", f"Keeper {n} Hansen tends lamp {n}.")
    await kb.mirror(folder)
    for n in range(15):
        (folder / f"{n}.md").unlink()
    with pytest.raises(InvalidInput, match="15 documents of 23"):
        await kb.mirror(folder)
    assert len((await kb.mirror(folder, allow_removals=True)).removed) == 15


async def test_a_mirror_without_its_state_removes_nothing_and_reads_again(kb: Quipu, folder: Path) -> None:
    await kb.mirror(folder)
    state = kb._components.path / STATE_FILE
    for damage in (state.unlink, lambda: state.write_text("[1, {"), lambda: state.write_text('{"x": 1}')):
        damage()
        (folder / "b.md").unlink(missing_ok=True)
        result = await kb.mirror(folder)
        assert result.removed == ()
        assert result.n_unchanged == 0
    assert len(await ids(kb)) == 3


async def test_what_an_interrupted_mirror_brought_belongs_to_it(
    kb: Quipu, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Quipu._finish

    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Quipu, "_finish", killed)
    with pytest.raises(KeyboardInterrupt):
        await kb.mirror(folder)
    monkeypatch.setattr(Quipu, "_finish", finish)
    await kb.resume()
    (folder / "a.md").unlink()
    assert (await kb.mirror(folder)).removed == ("notes/a.md",)
    assert await ids(kb) == ["notes/b.md", "notes/sub/c.md"]


async def test_an_unreadable_file_is_tried_again_and_keeps_its_document(
    kb: Quipu, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kb.mirror(folder)
    write(folder / "a.md", "Keeper a was replaced by Solveig Hansen.")
    read_bytes = sources._read_bytes

    def broken(path: Path, max_bytes: int) -> bytes:
        raise sources._unreadable(path, PermissionError(13, "Permission denied"))

    monkeypatch.setattr(sources, "_read_bytes", broken)
    result = await kb.mirror(folder)
    assert result.added is not None
    assert [document.id for document in result.added.failed] == ["notes/a.md"]
    assert "Vardø" in await kb.text("notes/a.md")
    monkeypatch.setattr(sources, "_read_bytes", read_bytes)
    await kb.mirror(folder)
    assert "Solveig Hansen" in await kb.text("notes/a.md")


async def test_a_document_that_was_removed_by_hand_comes_back(kb: Quipu, folder: Path) -> None:
    await kb.mirror(folder)
    await kb.remove(["notes/a.md"])
    await kb.mirror(folder)
    assert len(await ids(kb)) == 3


@pytest.mark.parametrize("name", ["nowhere", "notes/a.md"])
async def test_only_a_folder_can_be_mirrored(kb: Quipu, folder: Path, name: str) -> None:
    with pytest.raises(NotFound, match="There is no folder"):
        await kb.mirror(folder.parent / name)


async def test_a_change_in_a_watched_folder_is_mirrored(kb: Quipu, folder: Path) -> None:
    results = kb.watch(folder)
    assert (await anext(results)).new == ("notes/a.md", "notes/b.md", "notes/sub/c.md")
    write(folder / "d.md", "Keeper d Olsen is new.")
    assert (await anext(results)).new == ("notes/d.md",)  # it came before the watch began
    write(folder / "e.md", "Keeper e Olsen is new.")
    assert (await anext(results)).new == ("notes/e.md",)
    await results.aclose()
    assert len(await ids(kb)) == 5
