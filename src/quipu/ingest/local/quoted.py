"""Quoted: titles of works and names set in quotation marks, in Latin, Cyrillic and Chinese typography."""

import re
from collections.abc import Iterator

from quipu.ingest.local.occurrence import Cue, Occurrence
from quipu.text.unicode import UNSPACED

MAX_WORDS = 10
MAX_UNSPACED = 12

_MARKS = '«»“”„"《》〈〉「」『』'
_QUOTED = re.compile(rf"([«“„\"《〈「『])([^{_MARKS}\n]{{1,80}})([»”“\"》〉」』])")
_CLOSING = {"«": "»", "“": "”", "„": "“”", '"': '"', "《": "》", "〈": "〉", "「": "」", "『": "』"}
_WORKS = frozenset("《〈『")
_SENTENCE = re.compile(r"[.…。！，；：;:]$|[,.;:!?] [a-zа-яё]|\w{4}[.!?] |[，。！？；]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


def find_quoted(text: str) -> Iterator[Occurrence]:
    """Yield what stands in quotation marks and reads like a title or name, not like speech."""
    start = 0
    while (match := _QUOTED.search(text, start)) is not None:
        opening, inner, closing = match.groups()
        if closing not in _CLOSING[opening] or (opening == '"' and text[match.start() - 1 : match.start()].isalnum()):
            start = match.start() + 1
            continue
        start = match.end()
        name = inner.strip(" ,.")
        if name and (opening in _WORKS or _is_title(name)):
            begin = match.start(2) + inner.find(name)
            kind = "Content" if opening in _WORKS else ""
            yield Occurrence(" ".join(name.split()), begin, begin + len(name), Cue.QUOTED, kind)


def _is_title(name: str) -> bool:
    if _SENTENCE.search(name):
        return False
    if _UNSPACED.search(name):
        return 1 < len(name) <= MAX_UNSPACED
    words = _WORD.findall(name)
    if not words or len(words) > MAX_WORDS or not (words[0][0].isupper() or name[0].isdigit()):
        return False
    if "А" <= words[0][0] <= "я":
        return True
    return 2 * sum(1 for word in words if word[0].islower() and len(word) > 3) <= len(words)
