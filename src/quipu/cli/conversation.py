"""Earlier turns of a conversation, read from a file."""

import json
from pathlib import Path

from quipu.cli.texts import read_text
from quipu.errors import InvalidInput
from quipu.model.query import Turn

_REMEDY = 'Write a JSON list, as in [{"role": "user", "text": "Who was Alice Kober?"}].'


def read_history(file: Path) -> tuple[Turn, ...]:
    """Return the turns in a JSON file: a list of objects with role (user or assistant) and text (or content)."""
    try:
        turns = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The history {file} cannot be read: {error}.", remedy=_REMEDY) from None
    if not isinstance(turns, list):
        raise InvalidInput(f"The history {file} is not a list.", remedy=_REMEDY)
    return tuple(_turn(turn, number, file) for number, turn in enumerate(turns, 1))


def _turn(turn: object, number: int, file: Path) -> Turn:
    if isinstance(turn, dict):
        role, text = turn.get("role"), turn.get("text", turn.get("content"))
        if isinstance(text, str):
            if role == "user":
                return Turn(role="user", text=text)
            if role == "assistant":
                return Turn(role="assistant", text=text)
    raise InvalidInput(f"Turn {number} of {file} has no role (user or assistant) or no text.", remedy=_REMEDY)
