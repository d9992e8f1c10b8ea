"""`quipu keys`: who may use a server."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, QuipuGroup, index_folder, shared
from quipu.cli.output import emit, print_table, styled, table

if TYPE_CHECKING:
    from quipu.server.access import AccessKey, KeyFile, NewKey

_root_option = click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The keys of `quipu serve --root DIR`; by default those of the index.",
)


@click.group(
    "keys",
    cls=QuipuGroup,
    examples=("quipu keys create laptop --permission write", "quipu keys list", "quipu keys revoke 1f2e3d4c"),
)
def command() -> None:
    """Create, list and revoke the keys of a server.

    As soon as there is a key, every request needs one: Authorization: Bearer KEY.
    """


@command.command(
    "create", cls=QuipuCommand, examples=("quipu keys create laptop", "quipu keys create ci --expires 2027-01-31")
)
@click.argument("name")
@click.option(
    "--permission",
    type=click.Choice(["read", "write", "admin"]),
    default="read",
    show_default=True,
    help="What the key allows; each includes those before it.",
)
@click.option("--workspace", "workspaces", multiple=True, metavar="NAME", help="Only this one; again for others.")
@click.option("--expires", default="", metavar="TIME", help="A date or time (UTC); by default never.")
@_root_option
def create(name: str, permission: str, workspaces: tuple[str, ...], expires: str, root: Path | None) -> None:
    """Create a key, and print it. It is shown once: only a digest is stored."""
    from quipu.server.access import Permission

    emit(_key_file(root).create(name, Permission(permission), workspaces, expires), _render_new)


@command.command("list", cls=QuipuCommand, examples=("quipu keys list --json",))
@_root_option
def list_keys(root: Path | None) -> None:
    """List the keys, without their texts."""
    from quipu.server.access import without_secret

    emit([without_secret(key) for key in _key_file(root).keys().values()], _render_keys)


@command.command("revoke", cls=QuipuCommand, examples=("quipu keys revoke 1f2e3d4c",))
@click.argument("key_id")
@_root_option
def revoke(key_id: str, root: Path | None) -> None:
    """Revoke a key: a running server refuses it from the next request on."""
    from quipu.server.access import without_secret

    key = without_secret(_key_file(root).revoke(key_id))
    emit(key, lambda console, key: console.print(styled(f"Revoked {key.id} ({key.name}).")))


def _key_file(root: Path | None) -> "KeyFile":
    from quipu.server.access import KEYS_FILE, KeyFile

    if root is not None and shared().index:
        raise click.UsageError("Give --index DIR or --root DIR, not both.")
    return KeyFile((root.absolute() if root else index_folder("quipu keys")) / KEYS_FILE)


def _render_new(console: Console, new: "NewKey") -> None:
    console.print(styled(new.text), soft_wrap=True)
    console.print(styled(f"Key {new.key.id} ({new.key.name}), {new.key.permission}. It is not shown again.", "dim"))


def _render_keys(console: Console, keys: "list[AccessKey]") -> None:
    if not keys:
        console.print("There are no keys: `quipu keys create NAME` makes one.")
        return
    listing = table("id", "name", "permission", "workspaces", "created", "expires", ids=("id",))
    for key in keys:
        workspaces = ", ".join(key.workspaces) or "all"
        listing.add_row(
            *map(styled, (key.id, key.name, key.permission, workspaces, key.created, key.expires or "never"))
        )
    print_table(console, listing)
