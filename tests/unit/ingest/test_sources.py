"""Tests of sources: how files are found, named, read and skipped, and what Quipu's own files are."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quipu.errors import InvalidDocument, NotFound
from quipu.ingest.sources import (
    INDEX,
    TAPE,
    FoundSource,
    SkippedFiles,
    UnreadableSource,
    find_sources,
    index_parts,
    is_tape,
    text_source,
)
from quipu.model.chat import ChatRequest, Message, Role
from quipu.model.document import Metadata, SourceDocument
from quipu.model.results import UNREAD
from quipu.ports.ingest import FileTypes
from quipu.settings import Settings
from quipu.testing.llm import ScriptedLLM
from quipu.wiring import open_engine
from quipu.wrap.recording import RecordedLLM

FILE_TYPES = FileTypes({".txt": "text/plain", ".md": "text/markdown"})


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", errors="replace")


def find(*paths: Path, root: Path, metadata: Metadata | None = None) -> list[FoundSource]:
    return list(find_sources(paths, root=root, file_types=FILE_TYPES, metadata=metadata))


def ids(found: list[FoundSource]) -> list[str]:
    return [source.id for source in found if isinstance(source, SourceDocument)]


def test_a_file_becomes_a_document(tmp_path: Path) -> None:
    write(tmp_path, "notes/a.MD")
    assert find(tmp_path / "notes/a.MD", root=tmp_path) == [
        SourceDocument(id="notes/a.MD", source="notes/a.MD", content=b"text of notes/a.MD", media_type="text/markdown")
    ]


def test_folders_are_read_in_order_of_name_without_hidden_files_and_sidecars(tmp_path: Path) -> None:
    write(tmp_path, "b.txt", "a.txt", "d/z.txt", "c/y.md", "c/.x.md", ".git/x.md")
    (tmp_path / "a.meta.json").write_text("{}")
    assert ids(find(tmp_path, root=tmp_path)) == ["a.txt", "b.txt", "c/y.md", "d/z.txt"]
    assert len(find(tmp_path, root=tmp_path)) == 4


def test_a_hidden_folder_is_read_where_it_is_named(tmp_path: Path) -> None:
    write(tmp_path, ".notes/a.txt")
    assert ids(find(tmp_path / ".notes", root=tmp_path)) == [".notes/a.txt"]


def test_a_file_outside_the_root_is_named_by_its_whole_path(tmp_path: Path) -> None:
    write(tmp_path, "here/a.txt", "there/b.txt")
    found = find(tmp_path / "here/../there/b.txt", tmp_path / "here/a.txt", root=tmp_path / "here")
    assert ids(found) == [(tmp_path / "there/b.txt").as_posix(), "a.txt"]


def test_ids_do_not_depend_on_how_the_path_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "notes/a.txt")
    monkeypatch.chdir(tmp_path / "notes")
    for path in (Path("a.txt"), Path("../notes/a.txt"), Path(), tmp_path):
        assert ids(find(path, root=Path(".."))) == ["notes/a.txt"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt")
    assert ids(find(tmp_path / "b.txt", tmp_path, tmp_path / "a.txt", root=tmp_path)) == ["b.txt", "a.txt"]


def test_files_no_parser_reads_are_counted_within_folders(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.png", "c/d.PNG", "c/e.zip", "LICENSE")
    *_, skipped = find(tmp_path, root=tmp_path)
    assert isinstance(skipped, SkippedFiles)
    assert skipped.n_by_reason == {(UNREAD, ""): 1, (UNREAD, ".png"): 2, (UNREAD, ".zip"): 1}


def sniff(name: str, head: bytes) -> str:
    return "" if b"\0" in head else f"text/x-{name.lower()}"


def test_the_type_of_a_file_without_a_suffix_follows_from_its_bytes(tmp_path: Path) -> None:
    write(tmp_path, "README", "a.zip")
    (tmp_path / "program").write_bytes(b"\x7fELF\0\0")
    types = FileTypes(FILE_TYPES.by_suffix, sniff)
    source, skipped = find_sources([tmp_path], root=tmp_path, file_types=types)
    assert isinstance(source, SourceDocument)
    assert (source.id, source.media_type) == ("README", "text/x-readme")
    assert isinstance(skipped, SkippedFiles)
    assert skipped.n_by_reason == {(UNREAD, ""): 1, (UNREAD, ".zip"): 1}
    named, refused = find_sources([tmp_path / "a.zip", tmp_path / "program"], root=tmp_path, file_types=types)
    assert isinstance(named, SourceDocument)
    assert named.media_type == "text/x-a.zip"
    assert isinstance(refused, UnreadableSource)


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_skipped_and_is_no_failure(tmp_path: Path, content: bytes) -> None:
    for name in ("a.txt", "LICENSE"):
        (tmp_path / name).write_bytes(content)
    [skipped] = find_sources(
        [tmp_path, tmp_path / "LICENSE"], root=tmp_path, file_types=FileTypes({".txt": "text/plain"})
    )
    assert isinstance(skipped, SkippedFiles)
    assert skipped.n_by_reason == {("empty", ""): 2}


@pytest.mark.parametrize(("name", "kind"), [("a.pdf", "files ending in .pdf"), ("LICENSE", "files without a suffix")])
def test_a_file_no_parser_reads_is_refused_where_it_is_named(tmp_path: Path, name: str, kind: str) -> None:
    write(tmp_path, name)
    (source,) = find(tmp_path / name, root=tmp_path)
    assert isinstance(source, UnreadableSource)
    assert source.id == name
    assert kind in source.error.message
    assert source.error.remedy == "These can be read: .md, .txt."


def test_a_missing_path_is_reported_before_anything_is_read(tmp_path: Path) -> None:
    write(tmp_path, "a.txt")
    with pytest.raises(NotFound, match=r"b\.txt") as caught:
        find_sources([tmp_path / "a.txt", tmp_path / "b.txt"], root=tmp_path, file_types=FILE_TYPES)
    assert caught.value.remedy


def test_a_file_is_read_when_its_turn_comes(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt", "c.txt")
    sources = find_sources([tmp_path], root=tmp_path, file_types=FILE_TYPES)
    next(sources)
    (tmp_path / "b.txt").unlink()
    (tmp_path / "c.txt").write_text("changed")
    lost, changed = sources
    assert isinstance(lost, UnreadableSource)
    assert "No such file" in lost.error.message
    assert isinstance(changed, SourceDocument)
    assert changed.content == b"changed"


def test_links_are_followed_within_their_folder_and_not_out_of_it(tmp_path: Path) -> None:
    write(tmp_path, "in/a.txt", "in/sub/b.txt", "out/c.txt")
    (tmp_path / "in/inside.txt").symlink_to(tmp_path / "in/sub/b.txt")
    (tmp_path / "in/outside.txt").symlink_to(tmp_path / "out/c.txt")
    (tmp_path / "in/broken.txt").symlink_to(tmp_path / "nothing.txt")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    *found, skipped = find(tmp_path / "in", root=tmp_path)
    assert ids(found) == ["in/a.txt", "in/inside.txt", "in/sub/b.txt"]
    assert isinstance(skipped, SkippedFiles)
    assert skipped.n_by_reason == {("symbolic link", ""): 3}


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "out/c.txt")
    (tmp_path / "c.txt").symlink_to(tmp_path / "out/c.txt")
    assert ids(find(tmp_path / "c.txt", root=tmp_path)) == ["c.txt"]


def test_the_callers_metadata_wins_over_sidecars_and_the_exact_sidecar_over_the_other(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt")
    (tmp_path / "a.meta.json").write_text('{"x": 1, "y": 1, "z": 1}')
    (tmp_path / "a.txt.meta.json").write_text('{"y": 2, "z": 2, "tags": ["p", 3], "by": {"name": "Ann"}}')
    a, b = find(tmp_path, root=tmp_path, metadata={"z": 3})
    assert isinstance(a, SourceDocument)
    assert isinstance(b, SourceDocument)
    assert a.metadata == {"x": 1, "y": 2, "z": 3, "tags": ("p", "3"), "by.name": "Ann"}
    assert b.metadata == {"z": 3}


@pytest.mark.parametrize("content", [b"{", b"[1]", b'"x"', b"\xff\xfe{}", b'{"a": ' + b"[" * 100_000])
def test_a_malformed_sidecar_fails_its_document_alone(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "a.txt", "b.txt")
    (tmp_path / "a.meta.json").write_bytes(content)
    bad, good = find(tmp_path, root=tmp_path)
    assert isinstance(bad, UnreadableSource)
    assert "a.meta.json" in bad.error.message
    assert isinstance(good, SourceDocument)


def test_a_text_is_named_by_its_content() -> None:
    source = text_source("Ünï")
    assert source == text_source("Ünï")
    assert source.id != text_source("Uni").id
    assert source.id.startswith("text:")
    assert len(source.id) == len("text:") + 12
    assert source.content.decode() == "Ünï"


def test_a_text_keeps_what_the_caller_says_of_it() -> None:
    source = text_source("a", "letter", title="Letter", metadata={"year": 1901}, media_type="text/markdown")
    assert source == SourceDocument(
        id="letter", content=b"a", title="Letter", metadata={"year": 1901}, media_type="text/markdown"
    )


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="character 2"):
        text_source("ab\ud800")


def test_pipes_are_passed_over_in_folders_and_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "a.md").write_text("Text.")
    found = list(find_sources([tmp_path], root=tmp_path, file_types=FILE_TYPES))
    assert [type(each).__name__ for each in found] == ["SourceDocument", "SkippedFiles"]
    [named] = find_sources([tmp_path / "pipe.md"], root=tmp_path, file_types=FILE_TYPES)
    assert isinstance(named, UnreadableSource)
    assert "not a regular file" in str(named.error)


def error_of(source: FoundSource) -> InvalidDocument:
    assert isinstance(source, UnreadableSource)
    assert source.error.remedy
    return source.error


def test_a_sidecar_that_leads_out_of_the_folder_fails_its_document(tmp_path: Path) -> None:
    write(tmp_path, "in/a.txt", "in/b.txt")
    (tmp_path / "secret.json").write_text('{"key": "value"}')
    (tmp_path / "in/shared.json").write_text('{"key": "shared"}')
    (tmp_path / "in/a.meta.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "in/b.meta.json").symlink_to(tmp_path / "in/shared.json")
    a, b, _ = find(tmp_path / "in", root=tmp_path)
    assert "outside its folder" in error_of(a).message
    assert isinstance(b, SourceDocument)
    assert b.metadata == {"key": "shared"}


def test_a_sidecar_is_read_within_limits(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt", "c.txt")
    (tmp_path / "a.meta.json").write_text('{"": 1}')
    (tmp_path / "b.meta.json").write_text('{"a": "' + "x" * 1_000_000 + '"}')
    (tmp_path / "c.meta.json").write_text('{"a": ' + "9" * 30 + "}")
    a, b, c = find(tmp_path, root=tmp_path)
    assert "a key without a name" in error_of(a).message
    assert "more than 1,000,000 bytes" in error_of(b).message
    assert isinstance(c, SourceDocument)
    assert c.metadata == {"a": "9" * 30}


def test_a_file_too_large_to_hold_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(2**40)
    [found] = find(tmp_path, root=tmp_path)
    assert "more than 500,000,000 bytes" in error_of(found).message


def test_a_path_too_long_for_an_id_fails_alone(tmp_path: Path) -> None:
    write(tmp_path, "in/a.txt", "in/" + "/".join(["\udcff" * 200] * 4) + "/a.txt")  # spelled with six characters each
    good, bad = find(tmp_path / "in", root=tmp_path)
    assert isinstance(good, SourceDocument)
    assert "longer than 4,096 characters" in error_of(bad).message
    assert len(bad.id if isinstance(bad, UnreadableSource) else "") <= 4_096


def test_a_name_too_long_to_have_a_sidecar_is_read(tmp_path: Path) -> None:
    write(tmp_path, "x" * 251 + ".txt")
    assert ids(find(tmp_path, root=tmp_path)) == ["x" * 251 + ".txt"]


def test_names_that_are_no_text_are_spelled_and_no_file_is_lost(tmp_path: Path) -> None:
    for name in (b"\xff.txt", b"\\udcff.txt", b"\xfe.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("Text.")
    found = find(tmp_path, root=tmp_path)
    assert sorted(ids(found)) == ["\\udcfe.txt", "\\udcff.txt"]
    [lost] = [each for each in found if isinstance(each, UnreadableSource)]
    assert "Two files would be called" in error_of(lost).message


def test_a_folder_that_may_be_listed_but_not_entered_fails_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.txt", "shut/b.txt")
    plain = os.stat

    def refuse(path: Path, **options: bool) -> os.stat_result:  # what the system says to all but the root user
        if str(path).endswith("b.txt"):
            raise PermissionError(13, "Permission denied")
        return plain(path, **options)

    monkeypatch.setattr(os, "stat", refuse)
    a, b = find(tmp_path, root=tmp_path)
    assert isinstance(a, SourceDocument)
    assert "Permission denied" in error_of(b).message


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt")
    sources = find_sources([tmp_path], root=tmp_path, file_types=FILE_TYPES)
    next(sources)
    (tmp_path / "b.txt").unlink()
    listed = iter(sources)
    os.mkfifo(tmp_path / "b.txt")
    assert list(listed) == [SkippedFiles({("pipe or device", ""): 1})]


REQUEST = ChatRequest(messages=(Message("user", "Say OK. " * 99),), role=Role.EXTRACT, max_output_tokens=9)


async def test_a_tape_and_an_index_in_the_folder_are_left_out_and_reported(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Alice Kober taught classics at Brooklyn College.")
    (tmp_path / "own.jsonl").write_text('{"model": "T", "colour": "black"}\n')
    await RecordedLLM(ScriptedLLM(), tmp_path / "tape").complete(REQUEST)
    settings = Settings(index=tmp_path / "kb", exact_below=0)
    async with await open_engine(settings) as kb:
        await kb.add_text("Alice Kober taught.", id="kober")
        await kb.retrieve("Who taught?")
        assert list((tmp_path / "kb").rglob("*.json")), "an index holds files that a parser would read"
        report = await kb.add(tmp_path)
        found = {each.id for each in await kb.documents()}
    assert found == {"kober", "notes.md", "own.jsonl"}
    assert report.skipped == ((INDEX, "", 1), (TAPE, "", 1))
    assert report.failed == ()


async def test_a_tape_that_is_named_is_added(tmp_path: Path) -> None:
    await RecordedLLM(ScriptedLLM(), tmp_path / "tape").complete(REQUEST)
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add(tmp_path / "tape" / "extract.jsonl")
        assert [each.id for each in await kb.documents()] == ["tape/extract.jsonl"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"model": "x"}',
        '{"model": "x", "messages": [], "reply": ""}',
        '{"model": ' + "[" * 100_000,
        '{"model": ',
    ],
)
def test_other_lines_are_no_tape(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(text)
    assert not is_tape(file)


async def test_only_lines_of_json_are_looked_at(tmp_path: Path) -> None:
    await RecordedLLM(ScriptedLLM(), tmp_path).complete(REQUEST)
    tape = tmp_path / "extract.jsonl"
    assert is_tape(tape) and "reply" in json.loads(tape.read_text())
    assert not is_tape(tape.rename(tmp_path / "extract.md"))
    assert not is_tape(tmp_path / "gone.jsonl")


def test_only_what_an_index_is_made_of_is_left_out_beside_it(tmp_path: Path) -> None:
    own = {"index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite-journal", "vectors", "topology"}
    names = (*own, "index.sqlite.md", "index.sqlite-notes.md", "vectors.md", "notes.md")
    asked: list[Path] = []

    def is_index(file: Path) -> bool:
        asked.append(file)
        return True

    assert index_parts(tmp_path, names, is_index) == own
    assert asked == [tmp_path / "index.sqlite"]
    assert index_parts(tmp_path, names, lambda _: False) == frozenset()
    assert index_parts(tmp_path, ("vectors", "index.sqlite-wal"), is_index) == frozenset()
    assert len(asked) == 1


async def test_folders_beside_a_database_of_the_users_own_are_read(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for name in ("vectors/algebra.md", "topology/sets.md", "index.sqlite.md"):
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(f"Felix Hausdorff taught {name}.")
    with closing(sqlite3.connect(notes / "index.sqlite")) as connection:
        connection.execute("CREATE TABLE mine (x)")
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        report = await kb.add(notes)
        found = {each.id for each in await kb.documents()}
    assert found == {"notes/vectors/algebra.md", "notes/topology/sets.md", "notes/index.sqlite.md"}
    assert report.skipped == ((UNREAD, ".sqlite", 1),)
