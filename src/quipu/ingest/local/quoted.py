"""Quoted: titles of works and names set in quotation marks, in Latin, Cyrillic and Chinese typography."""

import re
from collections.abc import Iterator

from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.text.scripts import UNSPACED

_QUOTED = re.compile(
    r"«(?P<ru>[^«»\n]{2,80})»|“(?P<en>[^“”\n]{2,80})”|„(?P<de>[^„“”\n]{2,80})[“”]|(?<![\w\"])\"(?P<plain>[^\"\n]{2,80})\"(?!\w)"
    r"|《(?P<book>[^《》\n]{1,60})》|〈(?P<part>[^〈〉\n]{1,60})〉|「(?P<corner>[^「」\n]{1,30})」|『(?P<white>[^『』\n]{1,60})』"
)
_WORKS = frozenset(("book", "part", "white"))
_SENTENCE_END = re.compile(r"[.…。！，；：;:]$|[,.;:!?] [a-zа-яё]|[，。！？；]")
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
MAX_UNSPACED = 12


def find_quoted(text: str) -> Iterator[Occurrence]:
    """Yield what stands in quotation marks and reads like a title or name, not like speech."""
    for match in _QUOTED.finditer(text):
        group = match.lastgroup or "plain"
        inner = match.group(group)
        start, end = match.start(group), match.end(group)
        stripped = inner.strip(" ,.")
        start += inner.find(stripped)
        end = start + len(stripped)
        if group in _WORKS or _is_title(inner, stripped):
            yield Occurrence(" ".join(stripped.split()), start, end, Cue.QUOTED, "Content" if group in _WORKS else "")


def _is_title(inner: str, stripped: str) -> bool:
    if not stripped or _SENTENCE_END.search(stripped):
        return False
    if _HAS_UNSPACED.search(stripped):
        return len(stripped) <= MAX_UNSPACED
    words = _WORD.findall(stripped)
    if not words or len(words) > 10 or not words[0][0].isupper() and not stripped[0].isdigit():
        return False
    if len(words) > 2 and "А" <= words[0][0] <= "я":
        return True
    small = sum(1 for word in words if word[0].islower() and len(word) > 3)
    return small * 2 <= len(words)
