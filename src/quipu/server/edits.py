"""Edits: corrections of the graph by a person, their history, and undoing them."""

from typing import Annotated

from pydantic import Field

from quipu.engine import Quipu
from quipu.errors import NotFound
from quipu.model.edit import DuplicatePair, EditKind, EditPage, EditRequest, RecordedEdit, UndoResult
from quipu.server.access import LOCAL_CALLER, Permission
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE


class EditBody(WireBody):
    """A correction of the graph. Which values a kind of edit needs is said at `kind`."""

    kind: EditKind = Field(
        description="create (a new name, or the two ends of a new relation), rename (name), retype (type, or keywords "
        "of a relation), redescribe (description), hide, merge (two or more entities; name), split (name, documents), "
        "or distinct (two entities are not the same).",
        examples=["merge"],
    )
    entities: list[str] = Field(
        description="Names, aliases or keys: of one entity, or the two ends of a relation.", max_length=100
    )
    name: str = ""
    type: str = ""
    description: str = ""
    keywords: list[str] = Field(default_factory=list, max_length=100)
    documents: list[str] = Field(default_factory=list, max_length=1_000, description="The documents of a split.")
    author: str = Field("", description="Who made the edit; the name of the key, where one is needed.")
    reason: str = ""
    dry_run: bool = Field(False, description="Only return what would change; the id is 0.")


@operation("POST", f"{WORKSPACE}/edits", Permission.WRITE, is_idempotent=True)
async def make_edit(kb: Quipu, call: Call, body: EditBody) -> RecordedEdit:
    """Correct the graph. The edit holds for later documents, too, until it is undone; the next question sees it."""
    values = body.model_dump(exclude={"dry_run"})
    if call.caller is not LOCAL_CALLER:
        values["author"] = call.caller.name
    request = EditRequest(**values)
    return await (kb.edits.preview if body.dry_run else kb.edits.make)(request)


@operation("GET", f"{WORKSPACE}/edits", Permission.READ)
async def list_edits(
    kb: Quipu,
    *,
    entity: str = "",
    with_undone: bool = True,
    cursor: str = "",
    k: Annotated[int, Field(ge=1, le=1_000)] = 50,
) -> EditPage:
    """List edits page by page, the newest first: all, or those that name an entity.

    One with `has_effect` false, unless it is undone, lacks its target: no document states it now.
    """
    return await kb.edits.history(entity, with_undone=with_undone, cursor=cursor, k=k)


@operation("GET", f"{WORKSPACE}/edits/{{edit_id}}", Permission.READ)
async def show_edit(kb: Quipu, edit_id: str) -> RecordedEdit:
    """Return an edit."""
    return await kb.edits.edit(_number(edit_id))


@operation("DELETE", f"{WORKSPACE}/edits/{{edit_id}}", Permission.WRITE)
async def undo_edit(kb: Quipu, edit_id: str) -> UndoResult:
    """Undo an edit: the graph is then as if it had never been made. Edits that lack their target since are named."""
    return await kb.edits.undo([_number(edit_id)])


def _number(edit_id: str) -> int:
    if not (edit_id.isascii() and edit_id.isdigit()):
        raise NotFound(f"There is no edit {edit_id[:80]!r}.", remedy="List the edits.")
    return int(edit_id[:20])


@operation("GET", f"{WORKSPACE}/duplicates", Permission.READ)
async def list_duplicates(
    kb: Quipu,
    *,
    entity: str = "",
    above: Annotated[float, Field(ge=0, le=1)] = 0.6,
    k: Annotated[int, Field(ge=1, le=1_000)] = 50,
) -> tuple[DuplicatePair, ...]:
    """Return pairs of entities that may be one, with reasons, the most certain first: all, or those of one entity.

    Merge a pair, or tell it apart, by an edit of the kind merge or distinct.
    """
    return await kb.edits.duplicates(entity, above=above, k=k)


OPERATIONS = operations_of(make_edit, list_edits, show_edit, undo_edit, list_duplicates)
