"""DatabaseAddress: an index in a PostgreSQL database, named by an address instead of a folder."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

from quipu.errors import InvalidInput

_PASSWORDS = ("password", "sslpassword")  # parameters of libpq
_WORKSPACE = "workspace"
_WORKSPACE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,48}[a-z0-9])?")  # fits into a name of PostgreSQL
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")  # with its port
_DEFAULT = "default"
_FORM = "postgresql://USER@HOST:PORT/DATABASE?workspace=NAME"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where an index is in a database: `uri` is what libpq takes, `workspace` names one of the indexes there."""

    uri: str
    workspace: str = _DEFAULT

    def __str__(self) -> str:
        mark = "&" if "?" in self.uri else "?"
        return f"{self.uri}{mark}{_WORKSPACE}={self.workspace}"


def parse_database_address(text: str) -> DatabaseAddress:
    """Return the address in a text like postgresql://me@db.example/notes?workspace=work&sslmode=verify-full.

    Parameters other than `workspace` are those of libpq. Raises InvalidInput for an address with a password, which the
    message does not repeat, and for a name that no workspace can have.
    """
    scheme, _, rest = text.partition("://")
    place, _, query = rest.partition("?")
    parameters = parse_qsl(query, keep_blank_values=True)
    if _holds_password(place, parameters):
        raise InvalidInput(
            "The address of the index holds a password, which others could read in lists of processes and logs.",
            remedy="Leave it out, and give it in ~/.pgpass, the environment (PGPASSWORD), or a service file of libpq.",
        )
    workspaces = [value for name, value in parameters if name == _WORKSPACE]
    workspace = workspaces[-1] if workspaces else _DEFAULT
    if not _WORKSPACE_NAME.fullmatch(workspace):
        raise InvalidInput(
            f"{workspace[:80]!r} cannot name a workspace.",
            remedy="Use 1 to 50 lower-case letters, digits, - and _; the first and the last a letter or digit.",
        )
    others = urlencode([pair for pair in parameters if pair[0] != _WORKSPACE], quote_via=quote, safe="/:,")
    if not unquote(place).strip("/@") and not others:
        raise InvalidInput(f"{text!r} names no database.", remedy=f"Write {_FORM}.")
    return DatabaseAddress(f"{scheme.lower()}://{place}{'?' if others else ''}{others}", workspace)


def _holds_password(place: str, parameters: Sequence[tuple[str, str]]) -> bool:
    """Say whether there is a password, also one with a "/" or "?", which ends the part for user and hosts."""
    authority, _, database = place.partition("/")
    credentials, has_user, _ = authority.rpartition("@")
    if any(name.lower() in _PASSWORDS for name, _ in parameters) or (has_user and ":" in credentials):
        return True
    is_cut = "@" in database or any("@" in name for name, _ in parameters)
    return not has_user and ":" in authority and (is_cut or not all(map(_HOST.fullmatch, authority.split(","))))
