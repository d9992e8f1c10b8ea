"""Thinking: the reasoning some models write before a reply, with its tags opened and closed or only one of them."""

import re

_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection)"
_TAG = re.compile(
    rf"(?P<open><{_NAMES}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>)"
    rf"|(?P<close></{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>)",
    re.IGNORECASE,
)
# What a reply may begin with right after a closing tag; a word after a space is prose that mentions the tag.
_BEGINS_A_REPLY = re.compile(r"[ \t]*(?:\r?\n|\Z)|[\w{\[(\"“*#<|-]")
_QUOTES = "`'\"“‘"


def has_thinking(text: str) -> bool:
    """Say whether the text holds a tag of thinking, perhaps only in a mention of it."""
    return _TAG.search(text) is not None


def without_thinking(text: str) -> str:
    """Return the text without what stands between tags of thinking.

    A thought is opened at the start of a line. One that is never closed reaches to the end. Where a tag closes what
    nothing has opened, all before it was a thought, unless nothing follows: then the tag alone goes.
    """
    kept: list[str] = []
    place, opened, is_first = 0, False, True
    for tag in _TAG.finditer(text):
        if opened:
            if tag["close"]:
                opened, place, is_first = False, tag.end(), False
        elif tag["open"]:
            if _starts_line(text, tag.start()):
                kept.append(text[place : tag.start()])
                opened = True
        elif _closes(text, tag):
            kept.append(text[place : tag.start()])
            if is_first and text[tag.end() :].strip():
                kept.clear()
            place, is_first = tag.end(), False
    if not opened:
        kept.append(text[place:])
    return "".join(kept)


def without_tags(text: str) -> str:
    """Return the text with the tags of thinking taken out and all else kept."""
    return _TAG.sub("", text)


def _starts_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _closes(text: str, tag: re.Match[str]) -> bool:
    """Say whether a closing tag that nothing opened ends a thought, and is not only written about."""
    if tag.start() and text[tag.start() - 1] in _QUOTES:
        return False
    return _starts_line(text, tag.start()) or _BEGINS_A_REPLY.match(text, tag.end()) is not None
