"""Edits in Python: by the names that people use, with clear refusals, seen by the next question."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.engine import Quipu, duplicates, edits
from quipu.engine.edits import FOLDER
from quipu.errors import InvalidInput, NotFound, QuipuError, Unavailable
from quipu.model.document import SourceDocument
from quipu.model.edit import DuplicateDecision, EditKind, EditRequest
from tests.laws.world import engine

DOCUMENTS = (
    SourceDocument(id="a.md", content=b"IBM hired Grace Hopper in 1950. IBM is in Armonk."),
    SourceDocument(
        id="b.md",
        content=b"International Business Machines bought Lotus Development Corporation in Cambridge.",
    ),
)
FULL = "International Business Machines"


def request(kind: EditKind, *entities: str, **values: object) -> EditRequest:
    """Return a request for an edit."""
    return EditRequest(kind=kind, entities=entities, **values)  # type: ignore[arg-type]


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    """Return an engine with two documents that call a company by two names."""
    async with engine(tmp_path / "kb") as kb:
        await kb.add(*DOCUMENTS)
        yield kb


async def test_a_merge_is_seen_by_the_next_question(kb: Quipu) -> None:
    made = await kb.edits.make(request(EditKind.MERGE, FULL, "IBM", author="ada", reason="one company"))
    assert (made.edit.author, made.edit.reason, made.n_chunks, made.has_effect) == ("ada", "one company", 1, True)
    details = await kb.entity("IBM")
    assert details.entity.name == FULL
    assert {chunk.document_id for chunk, _ in details.chunks} == {"a.md", "b.md"}
    evidence = await kb.retrieve("What does IBM own?", strategy="local")
    assert evidence.entities[0].id == FULL.casefold()
    assert await kb.verify() == []
    assert (await kb.status()).stale == ()


async def test_what_a_person_creates_is_found_cited_and_gone_after_an_undo(kb: Quipu) -> None:
    before = [line async for line in kb.dump()]
    new = request(EditKind.CREATE, "Big Blue", type="Organization", description="A nickname of a company.")
    created = await kb.edits.make(new)
    (document,) = created.edit.documents
    assert document.startswith(FOLDER)
    related = request(EditKind.CREATE, "Big Blue", "IBM", description="IBM is called so.", keywords=["nickname"])
    relation = await kb.edits.make(related)
    assert (await kb.entity("Big Blue")).entity.type == "Organization"
    assert (await kb.relation("Big Blue", "IBM")).relation.keywords == ("nickname",)
    answer = await kb.query("What is Big Blue?")
    assert "A nickname of a company." in answer.text
    assert document in {citation.document_id for citation in answer.citations}
    result = await kb.edits.undo([created.id, relation.id])
    assert {edit.id for edit in result.undone} == {created.id, relation.id}
    assert [line async for line in kb.dump()] == before


async def test_removing_the_statement_of_a_person_leaves_an_edit_without_a_target(kb: Quipu) -> None:
    created = await kb.edits.make(request(EditKind.CREATE, "Big Blue"))
    await kb.remove(created.edit.documents)
    (listed,) = (await kb.edits.history()).edits
    assert not listed.has_effect
    await kb.edits.undo([created.id])
    assert (await kb.edits.history(with_undone=False)).edits == ()


async def test_an_undo_names_the_edits_that_lack_their_target_since(kb: Quipu) -> None:
    renamed = await kb.edits.make(request(EditKind.RENAME, "IBM", name="Big Blue"))
    later = await kb.edits.make(request(EditKind.RETYPE, "Big Blue", type="Company"))
    result = await kb.edits.undo([renamed.id])
    assert [edit.id for edit in result.without_target] == [later.id]


async def test_a_split_takes_effect_in_the_named_documents_only(kb: Quipu) -> None:
    await kb.add(SourceDocument(id="c.md", content=b"IBM is a journal. IBM appears in Boston."))
    await kb.edits.make(request(EditKind.SPLIT, "IBM", name="IBM (journal)", documents=["c.md"]))
    split = await kb.entity("IBM (journal)")
    assert [chunk.document_id for chunk, _ in split.chunks] == ["c.md"]
    assert (await kb.entity("IBM")).entity.n_chunks == 1


async def test_a_preview_changes_nothing(kb: Quipu) -> None:
    before = [line async for line in kb.dump()]
    preview = await kb.edits.preview(request(EditKind.HIDE, "IBM"))
    assert (preview.id, preview.n_chunks) == (0, 1)
    assert (await kb.edits.preview(request(EditKind.HIDE, "IBM", "Grace Hopper"))).n_chunks == 1
    assert [line async for line in kb.dump()] == before
    assert (await kb.edits.history()).edits == ()


async def test_the_history_comes_page_by_page(kb: Quipu) -> None:
    for type_ in ("A", "B", "C"):
        await kb.edits.make(request(EditKind.RETYPE, "IBM", type=type_))
    first = await kb.edits.history(k=2)
    assert [edit.edit.type for edit in first.edits] == ["C", "B"]
    last = await kb.edits.history(k=2, cursor=first.cursor)
    assert [edit.edit.type for edit in last.edits] == ["A"]
    assert last.cursor == ""
    with pytest.raises(InvalidInput, match="is no cursor"):
        await kb.edits.history(cursor="x")
    assert (await kb.edits.history("Grace Hopper")).edits == ()
    assert len((await kb.edits.history("ibm".upper())).edits) == 3


@pytest.mark.parametrize(
    ("refused", "error", "words"),
    [
        (request(EditKind.HIDE, "Nobody"), NotFound, "no entity 'Nobody'"),
        (request(EditKind.HIDE, "Grace Hopper", FULL), NotFound, "Nothing relates"),
        (request(EditKind.HIDE), InvalidInput, "not 0"),
        (request(EditKind.MERGE, "IBM"), InvalidInput, "2 or more entities, not 1"),
        (request(EditKind.MERGE, "IBM", "IBM"), InvalidInput, "are one entity"),
        (request(EditKind.RENAME, "IBM"), InvalidInput, "needs a value for 'name'"),
        (request(EditKind.RENAME, "IBM", name="…"), InvalidInput, "is no name"),
        (request(EditKind.RENAME, "IBM", name="IBM"), InvalidInput, "called 'IBM' already"),
        (request(EditKind.RENAME, "IBM", name="Grace Hopper"), InvalidInput, "another entity"),
        (request(EditKind.RENAME, "IBM", name="x" * 301), InvalidInput, "at most 300"),
        (request(EditKind.RENAME, "IBM", name="a\0b"), InvalidInput, "no text"),
        (request(EditKind.RENAME, "IBM", name="a\ud800b"), InvalidInput, "no text"),
        (request(EditKind.HIDE, "IBM", description="x"), InvalidInput, "does not change 'description'"),
        (request(EditKind.RETYPE, "IBM", "Grace Hopper", type="x"), InvalidInput, "does not change 'type'"),
        (request(EditKind.RETYPE, "IBM", "Grace Hopper"), InvalidInput, "needs a value for 'keywords'"),
        (request(EditKind.SPLIT, "IBM", name="J", documents=["b.md"]), InvalidInput, "does not mention"),
        (request(EditKind.SPLIT, "IBM", name="J", documents=["no.md"]), NotFound, "no.md"),
        (request(EditKind.CREATE, "IBM"), InvalidInput, "is a name of 'IBM'"),
        (request(EditKind.CREATE, "IBM", "Grace Hopper"), InvalidInput, "related already"),
        (request(EditKind.CREATE, "IBM", "IBM"), InvalidInput, "stand for"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
async def test_an_edit_that_makes_no_sense_is_refused(
    kb: Quipu, refused: EditRequest, error: type[QuipuError], words: str
) -> None:
    before = [line async for line in kb.dump()]
    with pytest.raises(error, match=words):
        await kb.edits.make(refused)
    assert [line async for line in kb.dump()] == before


async def test_an_edit_can_be_undone_once(kb: Quipu) -> None:
    made = await kb.edits.make(request(EditKind.HIDE, "IBM"))
    await kb.edits.undo([made.id])
    with pytest.raises(InvalidInput, match="undone already"):
        await kb.edits.undo([made.id])
    for unknown in (made.id + 1, 10**30):
        with pytest.raises(NotFound, match="no edit"):
            await kb.edits.undo([unknown])


async def test_a_store_without_edits_says_so(kb: Quipu) -> None:
    without = Quipu(replace(kb._components, edits=None))
    with pytest.raises(Unavailable, match="keeps no edits"):
        await without.edits.history()


async def test_duplicates_are_found_decided_and_not_proposed_again(kb: Quipu) -> None:
    text = "Alan Turing led a team in Bletchley. Turing Ltd is a shop."
    await kb.add(SourceDocument(id="c.md", content=text.encode()))
    for name in ("GraceHopper", "Grace Hopper Inc"):
        await kb.edits.make(request(EditKind.CREATE, name))
    pairs = await kb.edits.duplicates("Grace Hopper")
    assert {pair.first.name for pair in pairs} | {pair.second.name for pair in pairs} >= {"GraceHopper", "Grace Hopper"}
    merge = DuplicateDecision(first="Grace Hopper", second="GraceHopper", kind=EditKind.MERGE, name="Grace Hopper")
    apart = DuplicateDecision(first="Grace Hopper", second="Grace Hopper Inc", kind=EditKind.DISTINCT)
    made = await kb.edits.decide([merge, merge, apart], author="ada")
    assert [edit.edit.kind for edit in made] == [EditKind.MERGE, EditKind.DISTINCT]  # the second time, they are one
    assert await kb.edits.duplicates("Grace Hopper", above=0.7) == ()
    await kb.edits.undo([edit.id for edit in made])
    assert len(await kb.edits.duplicates("Grace Hopper")) == len(pairs)


async def test_a_decision_is_to_merge_or_to_tell_apart(kb: Quipu) -> None:
    wrong = DuplicateDecision(first="IBM", second="Grace Hopper", kind=EditKind.HIDE)
    with pytest.raises(InvalidInput, match="is no decision"):
        await kb.edits.decide([wrong])


async def test_a_removal_names_the_edits_that_lose_their_target_and_those_that_change_less(kb: Quipu) -> None:
    await kb.add(SourceDocument(id="c.md", content=b"IBM sold Lotus Development Corporation to Smith in Boston."))
    described = await kb.edits.make(request(EditKind.REDESCRIBE, "Grace Hopper", description="A pioneer."))
    retyped = await kb.edits.make(request(EditKind.RETYPE, "IBM", type="Company"))
    created = await kb.edits.make(request(EditKind.CREATE, "Cobol", type="Language"))
    preview = await kb.preview_removal(["a.md"])
    assert [edit.id for edit in preview.edits_lost] == [described.id]
    assert [edit.id for edit in preview.edits_changed] == [retyped.id]
    preview = await kb.preview_removal(created.edit.documents)
    assert ([edit.id for edit in preview.edits_lost], preview.edits_changed) == ([created.id], ())
    await kb.remove(["a.md"])
    effects = {edit.id: edit.has_effect for edit in (await kb.edits.history()).edits}
    assert effects == {described.id: False, retyped.id: True, created.id: True}


async def test_shared_neighbours_and_synonyms_make_candidates_that_follow_changes(kb: Quipu) -> None:
    for n in range(4):
        text = f"Ebenezer Scrooge met Fred Holywell{n} in London. Scrooge met Fred Holywell{n} in Camden."
        await kb.add(SourceDocument(id=f"carol{n}.md", content=text.encode()))
        pairs = await kb.edits.duplicates("Scrooge", above=0.3)
    (pair,) = [pair for pair in pairs if pair.second.name == "Scrooge"]
    assert pair.candidate.reasons == ("one is a part of the other", "4 shared neighbours")
    assert pairs == await Quipu(kb._components).edits.duplicates("Scrooge", above=0.3)  # as if nothing were remembered
    await kb.add_text("Lotus Development Corp grew. The Lotus Development Company grew.", id="lotus")
    await kb.refresh(["synonyms"])
    reasons = {reason for pair in await kb.edits.duplicates(above=0.1) for reason in pair.candidate.reasons}
    assert any(reason.startswith("similar by vectors") for reason in reasons)


async def test_pairs_that_stay_apart_do_not_hide_others(kb: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "MAX_MERGES", 1)
    monkeypatch.setattr(duplicates, "_N_WEIGHED", 1)
    text = b"GraceHopper wrote to HowardAiken in Boston. Grace Hopper met Howard Aiken there."
    await kb.add(SourceDocument(id="c.md", content=text))
    first, second = await kb.edits.merge_duplicates(0.9)
    await kb.edits.undo([first.id, second.id])
    assert await kb.edits.merge_duplicates(0.9) == ()
    await kb.add(SourceDocument(id="d.md", content=b"JohnBackus wrote to Howard Aiken. John Backus met IBM."))
    (third,) = await kb.edits.merge_duplicates(0.9)
    assert "john backus" in third.edit.entities


async def test_certain_duplicates_are_merged_after_an_addition_where_that_is_set(kb: Quipu) -> None:
    merging = Quipu(replace(kb._components, merge_duplicates_above=0.9))
    document = SourceDocument(id="c.md", content=b"GraceHopper wrote to Howard Aiken in Boston. IBM paid.")
    await merging.add(document)
    (edit,) = (await merging.edits.history()).edits
    assert (edit.edit.kind, edit.edit.author) == (EditKind.MERGE, "quipu")
    assert edit.edit.reason.startswith("score 0.95: equal without spaces")
    assert (await merging.entity("GraceHopper")).entity.key == "grace hopper"
    await merging.edits.undo([edit.id])
    await merging.add(replace(document, id="d.md"))
    assert len((await merging.edits.history(with_undone=False)).edits) == 0  # what was undone stays so
    assert await kb.verify() == []
