"""`quipu edit`, `history` and `undo`: corrections of the graph by a person."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.document_ids import typed_ids
from quipu.cli.options import QuipuCommand, command_line, user_name, with_engine
from quipu.cli.output import emit, print_table, styled, table
from quipu.cli.results import edit_summary
from quipu.model.edit import EditKind, EditPage, EditRequest, RecordedEdit, UndoResult
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu


@click.command(
    "edit",
    cls=QuipuCommand,
    examples=(
        'quipu edit rename "A. Lovelace" --name "Ada Lovelace"',
        'quipu edit merge IBM "I.B.M." --name "International Business Machines" --reason "one company"',
        "quipu edit retype IBM --type Company",
        'quipu edit redescribe "Ada Lovelace" "Charles Babbage" --description "She wrote about his engine."',
        "quipu edit hide Chapter",
        'quipu edit split Mercury --name "Mercury (planet)" --document sky.md',
        'quipu edit create "Analytical Engine" --type Artifact --description "A machine of Babbage."',
        'quipu edit distinct "John Smith" "Jon Smith"',
    ),
)
@click.argument("kind", metavar="KIND", type=click.Choice([kind.value for kind in EditKind]))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--name", default="", help="The new name, for rename and split; of what remains, for merge.")
@click.option("--type", "type_", default="", help="The type of an entity, for retype and create.")
@click.option("--description", default="", help="For redescribe and create.")
@click.option("--keyword", "keywords", multiple=True, help="Of a relation, for retype and create; again for others.")
@click.option("--document", "documents", multiple=True, metavar="ID", help="Where a split holds; again for others.")
@click.option("--reason", default="", help="Why; kept in the history.")
@click.option("--author", default="", help="Who; by default the user of this computer.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only tell what would change.")
def edit(kind: str, names: tuple[str, ...], type_: str, *, author: str, is_dry: bool, **values: object) -> None:
    """Correct the graph; an edit survives updates and can be undone.

    KIND is create, rename, retype, redescribe, hide, merge, split (one name stands for two entities) or distinct (two
    entities are not the same). NAME is a name of an entity; for create, retype, redescribe and hide, two names stand
    for the relation between them.

    An edit holds for the documents of today and for those to come. What documents say is kept beside it: undoing an
    edit gives the graph as if it had never been made. `quipu history` lists edits.
    """
    request = EditRequest(
        kind=EditKind(kind),
        entities=names,
        type=type_,
        author=author or user_name(),
        **values,  # type: ignore[arg-type]
    )
    emit(with_engine(lambda kb: _edit(kb, request, is_dry=is_dry)), _render_preview if is_dry else _render_edit)


async def _edit(kb: "Quipu", request: EditRequest, *, is_dry: bool) -> RecordedEdit:
    request = replace(request, documents=await typed_ids(kb, request.documents))
    return await (kb.edits.preview if is_dry else kb.edits.make)(request)


@click.command(
    "history", cls=QuipuCommand, examples=("quipu history", 'quipu history "Ada Lovelace"', "quipu history --json")
)
@click.argument("entity", default="")
@click.option("--active", is_flag=True, help="Leave out edits that are undone.")
@click.option("-k", default=50, show_default=True, type=click.IntRange(1, 1_000), help="How many, newest first.")
@click.option("--cursor", default="", metavar="ID", help="The page after this edit.")
def history(entity: str, *, active: bool, k: int, cursor: str) -> None:
    """List the edits of the graph, or those of one entity.

    An edit without a target changes nothing now: no document states what it is about. It takes effect again as soon as
    one does.
    """
    emit(with_engine(lambda kb: kb.edits.history(entity, with_undone=not active, cursor=cursor, k=k)), _render_history)


@click.command("undo", cls=QuipuCommand, examples=("quipu undo 7", "quipu undo 7 8 --json"))
@click.argument("ids", nargs=-1, required=True, type=int)
def undo(ids: tuple[int, ...]) -> None:
    """Undo edits: the graph is then as if they had never been made.

    Edits that then lack their target are listed; they stay, and take effect again when a document states it.
    """
    emit(with_engine(lambda kb: kb.edits.undo(ids)), _render_undo)


def _render_edit(console: Console, recorded: RecordedEdit) -> None:
    console.print(styled(f"Edit {recorded.id}: {edit_summary(recorded.edit)}"))
    if recorded.edit.kind is not EditKind.CREATE:
        console.print(f"{format_count(recorded.n_chunks, 'chunk')} changed.")
    console.print(styled(f"To undo it: {command_line('undo', str(recorded.id))}", "dim"))


def _render_preview(console: Console, recorded: RecordedEdit) -> None:
    console.print(styled(f"Would {edit_summary(recorded.edit)}"))
    console.print(f"{format_count(recorded.n_chunks, 'chunk')} may change. Nothing was changed.")


def _render_history(console: Console, page: EditPage) -> None:
    if not page.edits:
        console.print("There are no edits.")
        return
    listing = table("id", "when", "who", "what", "state", right=("id",))
    for recorded in page.edits:
        when, who = recorded.made_at.replace("T", " ").partition("+")[0], recorded.edit.author
        what = edit_summary(recorded.edit) + (f" ({recorded.edit.reason})" if recorded.edit.reason else "")
        listing.add_row(str(recorded.id), when, styled(who), styled(what), _state(recorded))
    print_table(console, listing)
    if page.cursor:
        console.print(styled(f"Older ones: {command_line('history', '--cursor', page.cursor)}", "dim"))


def _state(recorded: RecordedEdit) -> str:
    if recorded.undone_at:
        return "undone"
    if not recorded.has_effect:
        return "no target"
    return format_count(recorded.n_chunks, "chunk") if recorded.n_chunks else "holds"


def _render_undo(console: Console, result: UndoResult) -> None:
    for recorded in result.undone:
        console.print(styled(f"Undone: {edit_summary(recorded.edit)}"))
    for recorded in result.without_target:
        console.print(styled(f"Edit {recorded.id} has no target now: {edit_summary(recorded.edit)}", "yellow"))
