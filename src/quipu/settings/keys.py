"""Keys of model servers: from the environment or a file of secrets, never from settings, arguments or the index."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.errors import InvalidInput

SECRETS_NAME = "secrets.toml"


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key and where it was found; shown, it is only the latter."""

    value: str
    origin: str

    def __repr__(self) -> str:
        return f"FoundKey({self.origin!r})"


def find_key(variables: Sequence[str], lines: Sequence[str], secrets: Path | None) -> FoundKey | None:
    """Return the key under the first of the environment `variables` that is set, else of the first of `lines`.

    A file of secrets is TOML, with a line for each provider (`openai = "sk-…"`), host (`"gpu.example:8000" = "…"`) or
    variable. Raises InvalidInput where it cannot be read; the message does not repeat what is in it.
    """
    for name in variables:
        if value := os.environ.get(name, "").strip():
            return FoundKey(value, f"environment {name}")
    if secrets is None:
        return None
    try:
        kept = tomllib.loads(secrets.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not TOML in UTF-8"
        raise InvalidInput(f"The secrets in {secrets} cannot be read ({reason}).", remedy="Mend the file.") from None
    for name in lines:
        found = kept.get(name)
        if isinstance(found, str) and found.strip():
            return FoundKey(found.strip(), f"{secrets} ({name})")
    return None


def find_secrets(named: Path | None, index: Path) -> Path | None:
    """Return the file of secrets: the one named, else secrets.toml in the current directory or beside the index."""
    if named is not None:
        if not named.is_file():
            raise InvalidInput(f"secrets = {str(named)!r} is not a file.", remedy="Name a file in TOML.")
        return named
    return next((file for folder in (Path(), index.parent) if (file := folder / SECRETS_NAME).is_file()), None)
