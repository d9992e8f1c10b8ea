"""Instructions: the text of a prompt that tells a model what to do. Users can replace it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType

from quipu.errors import InvalidInput
from quipu.model.chat import PromptText
from quipu.model.ids import digest

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The default instructions of one prompt. A PromptText with the same `name` replaces `text`, and nothing else.

    `purpose` says in a few words what the model is asked for. `text` has placeholders such as {format}, which every
    replacement must have too. `fixed` maps those that are the same in every request to their values. `title` comes
    before the text and `fence` after it, whoever wrote the text. Braces around anything but a placeholder stand for
    themselves.
    """

    name: str
    purpose: str
    text: str
    title: str = ""
    fixed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    fence: str = ""

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names of the placeholders, in order."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(self.text)))

    def check(self, text: str) -> None:
        """Raise InvalidInput if a replacement is empty, or lacks a placeholder, or has one that nothing fills in."""
        remedy = f"`quipu config --prompt {self.name}` prints the default text."
        if not text.strip():
            raise InvalidInput(f"The text of the prompt {self.name} is empty.", remedy=remedy)
        names = _PLACEHOLDER.findall(text)
        if missing := [name for name in self.placeholders if name not in names]:
            raise InvalidInput(
                f"The text of the prompt {self.name} lacks {_in_braces(missing)}.",
                remedy=f"Write it where Quipu should fill it in; {remedy}",
            )
        if unknown := [name for name in dict.fromkeys(names) if name not in self.placeholders]:
            has = f"It has {_in_braces(self.placeholders)}" if self.placeholders else "It has none"
            raise InvalidInput(
                f"The prompt {self.name} has no placeholder {_in_braces(unknown)}.", remedy=f"{has}; {remedy}"
            )

    def render(self, texts: Sequence[PromptText] = (), **values: str) -> str:
        """Return the instructions as they are sent: the user's text if `texts` has one, with `values` filled in."""
        text = _own_text(self.name, texts) or self.text
        value_by_name = {**self.fixed, **values}
        filled = _PLACEHOLDER.sub(lambda match: value_by_name[match[1]], text)
        return f"{self.title}\n\n{filled}{self.fence}" if self.title else f"{filled}{self.fence}"


def prompt_version(version: str, texts: Sequence[PromptText], *prompts: Instructions) -> str:
    """Return the version of `prompts`: that of the default texts, with a digest of the user's own ones if any."""
    own = [(prompt.name, text) for prompt in prompts if (text := _own_text(prompt.name, texts))]
    return f"{version}+{digest('prompts', *chain.from_iterable(own))[:8]}" if own else version


def _own_text(name: str, texts: Sequence[PromptText]) -> str:
    return next((own.text for own in texts if own.prompt == name), "")


def _in_braces(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
