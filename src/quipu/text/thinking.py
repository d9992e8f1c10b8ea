"""Thinking: the reasoning that some models write between tags before a reply."""

import re

_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection)"
_TAG = re.compile(
    rf"(?P<open><{_NAMES}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>)"
    rf"|(?P<close></{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>)",
    re.IGNORECASE,
)
# What may follow a closing tag directly if a reply starts there. A space and a word are prose that mentions the tag.
_REPLY_START = re.compile(r"[ \t]*(?:\r?\n|\Z)|[\w{\[(\"“*#<|-]")
_QUOTES = "`'\"“‘"


def has_thinking(text: str) -> bool:
    """Return whether the text holds a thinking tag. The text may only mention the tag."""
    return _TAG.search(text) is not None


def strip_thinking(text: str) -> str:
    """Return the text without the thinking between tags.

    Thinking starts at an opening tag at the start of a line. Without a closing tag it reaches to the end of the text.
    A closing tag without an opening tag ends thinking that started with the text. If nothing follows that tag, the
    text before it stays and only the tag is removed.
    """
    parts: list[str] = []
    position, is_open, is_first = 0, False, True
    for tag in _TAG.finditer(text):
        if is_open:
            if tag["close"]:
                is_open, position, is_first = False, tag.end(), False
        elif tag["open"]:
            if _is_at_line_start(text, tag.start()):
                parts.append(text[position : tag.start()])
                is_open = True
        elif _ends_thinking(text, tag):
            parts.append(text[position : tag.start()])
            if is_first and text[tag.end() :].strip():
                parts.clear()
            position, is_first = tag.end(), False
    if not is_open:
        parts.append(text[position:])
    return "".join(parts)


def strip_thinking_tags(text: str) -> str:
    """Return the text without thinking tags; the thinking itself stays."""
    return _TAG.sub("", text)


def _is_at_line_start(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _ends_thinking(text: str, tag: re.Match[str]) -> bool:
    """Return whether a closing tag without an opening tag ends thinking. Otherwise the text only mentions the tag."""
    if tag.start() and text[tag.start() - 1] in _QUOTES:
        return False
    return _is_at_line_start(text, tag.start()) or _REPLY_START.match(text, tag.end()) is not None
