"""Makes text of documents and names of files safe to print: control characters must not reach the terminal."""

import json
import unicodedata

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{SOFT HYPHEN}"
_MAX_NAME = 1_000  # characters


def clean(text: str) -> str:
    """Return `text` with control characters replaced, except line ends and tabs."""
    return "".join(_REPLACEMENT if _is_control(character) else character for character in text)


def clean_name(name: str) -> str:
    """Return the name of a document or file on one line, cut if very long, so that it cannot imitate our output."""
    line = clean(name.replace("\n", _REPLACEMENT).replace("\t", _REPLACEMENT))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"


def clean_json(text: str) -> str:
    """Return JSON with control characters escaped; its values stay the same."""
    return "".join(json.dumps(character)[1:-1] if _is_control(character) else character for character in text)


def _is_control(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINERS
