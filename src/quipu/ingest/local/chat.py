"""Chat: who speaks, in lines such as "Maya: Hey!" or "小明：你好"."""

import re
from collections.abc import Iterator

from quipu.ingest.local.lexicon import empty_words
from quipu.ingest.local.occurrence import Cue, Occurrence

_LABEL = re.compile(
    r"^[ \t>*-]*(?P<name>[^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2})\*{0,2}"
    r"(?::(?=\s)|：)[ \t]*(?P<said>[^\n]*)",
    re.MULTILINE,
)
_SPEECH = re.compile(
    r"[!?！？…😀-🙏]|\b(?:I|you|me|my|your|we|I'm|ты|вы|я|мы|мне|тебя)\b|[你我您吗呢吧啊]", re.IGNORECASE
)
_HAN = re.compile(r"[\u3400-\u9fff]+")
MIN_LINES = 2


def find_speakers(text: str) -> Iterator[Occurrence]:
    """Yield the speakers of a conversation: labels of two or more lines, or of one that reads like speech."""
    labels = [match for match in _LABEL.finditer(text) if _is_speaker(match["name"])]
    if len(labels) < MIN_LINES and not any(_SPEECH.search(match["said"]) for match in labels):
        return
    for match in labels:
        yield Occurrence(match["name"], match.start("name"), match.end("name"), Cue.SPEAKER, "Person")


def _is_speaker(name: str) -> bool:
    if _HAN.fullmatch(name):
        return len(name) <= 4
    words = name.split()
    return all(word[0].isupper() for word in words) and words[-1].casefold() not in empty_words()
