"""Pattern names: names in quotation marks, speakers of a chat, and lower-case terms that are defined or repeated."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from quipu.ingest.local.lexicon import is_common_word, is_sentence_opener
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.text.unicode import UNSPACED

MAX_WORDS = 10
MAX_UNSPACED_CHARS = 12
MIN_SPEAKER_LINES = 2
MIN_REPEATS = 3
MAX_TERMS = 4
MIN_LETTERS = 3

_MARKS = '«»“”„"《》〈〉「」『』'
_QUOTED = re.compile(rf"([«“„\"《〈「『])([^{_MARKS}\n]{{1,80}})([»”“\"》〉」』])")
_CLOSING_MARKS = {"«": "»", "“": "”", "„": "“”", '"': '"', "《": "》", "〈": "〉", "「": "」", "『": "』"}
_TITLE_MARKS = frozenset("《〈『")
_SENTENCE = re.compile(r"[.…。！，；：;:]$|[,.;:!?] [a-zа-яё]|\w{4}[.!?] |[，。！？；]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")

_SPEAKER_LINE = re.compile(
    r"^[ \t>*-]*(?P<name>[^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2})\*{0,2}"
    r"(?::(?=\s)|：)[ \t]*(?P<speech>[^\n]*)",
    re.MULTILINE,
)
_SPEECH = re.compile(
    r"[!?！？…😀-🙏]|\b(?:I|you|me|my|your|we|I'm|ты|вы|я|мы|мне|тебя)\b|[你我您吗呢吧啊]", re.IGNORECASE
)
_HAN = re.compile(r"[\u3400-\u9fff]+")

_DEFINITION = re.compile(
    r"(?:In [a-z ]{3,40}, )?(?:(?:An?|The) )?(?P<term>[A-Za-z][a-z-]+(?: [a-z][a-z-]+){1,2})"
    r"(?: \([^()]{1,60}\))?,? (?:is|are) (?:an?|the|any|one of)\b"
    r"|(?P<russian>[А-ЯЁ][а-яё-]+(?: [а-яё-]+){1,2}) ?(?:\([^()]{1,60}\) )?— это\b"
)
_NOT_LAST = re.compile(r"\w+(?:ly|ed|ing|ous|ive|ful|ся|ть|ый|ий|ая|ое|ые|ого|ых|но)")


def find_quoted(text: str) -> Iterator[Occurrence]:
    """Yield what stands in quotation marks and reads like a title or name and not like speech."""
    start = 0
    while (match := _QUOTED.search(text, start)) is not None:
        opening, inner, closing = match.groups()
        if closing not in _CLOSING_MARKS[opening] or (
            opening == '"' and text[match.start() - 1 : match.start()].isalnum()
        ):
            start = match.start() + 1
            continue
        start = match.end()
        name = inner.strip(" ,.")
        if name and (opening in _TITLE_MARKS or _reads_like_title(name)):
            begin = match.start(2) + inner.find(name)
            entity_type = "Content" if opening in _TITLE_MARKS else ""
            yield Occurrence(" ".join(name.split()), begin, begin + len(name), Cue.QUOTED, entity_type)


def _reads_like_title(name: str) -> bool:
    if _SENTENCE.search(name):
        return False
    if _UNSPACED.search(name):
        return 1 < len(name) <= MAX_UNSPACED_CHARS
    words = _WORD.findall(name)
    if not words or len(words) > MAX_WORDS or not (words[0][0].isupper() or name[0].isdigit()):
        return False
    if "А" <= words[0][0] <= "я":
        return True
    return 2 * sum(1 for word in words if word[0].islower() and len(word) > 3) <= len(words)


def find_speakers(text: str) -> Iterator[Occurrence]:
    """Yield the speakers of a chat, as in "Maya: Hey!" or "小明：你好".

    A chat has at least two lines with a speaker, or one that reads like speech.
    """
    lines = [match for match in _SPEAKER_LINE.finditer(text) if _is_speaker(match["name"])]
    if len(lines) < MIN_SPEAKER_LINES and not any(_SPEECH.search(match["speech"]) for match in lines):
        return
    for match in lines:
        yield Occurrence(match["name"], match.start("name"), match.end("name"), Cue.SPEAKER, "Person")


def _is_speaker(name: str) -> bool:
    if _HAN.fullmatch(name):
        return len(name) <= 4
    words = name.split()
    return all(word[0].isupper() for word in words) and not is_common_word(words[-1].casefold())


def find_terms(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Occurrence]:
    """Yield lower-case noun phrases that a chunk is about; `spans` are the [start, end) of its sentences.

    These are phrases that a sentence defines at its start ("Gradient descent is an algorithm"), and the pairs of words
    that stand next to each other at least three times.
    """
    for start, end in spans:
        match = _DEFINITION.match(text, start, end)
        if match is not None:
            group = match.lastgroup or "term"
            if _is_term(match[group].casefold().split()):
                yield Occurrence(match[group], match.start(group), match.end(group), Cue.TERM, "Concept")
    for first, second in _repeated_pairs(text):
        pattern = re.compile(rf"\b{re.escape(first)} {re.escape(second)}\b")
        yield from (Occurrence(m.group(), m.start(), m.end(), Cue.TERM, "Concept") for m in pattern.finditer(text))


def _repeated_pairs(text: str) -> list[tuple[str, str]]:
    """Return the most frequent pairs of consecutive words; equals in order of first occurrence."""
    counts = Counter(pairwise(text.split()))
    repeated = [(pair, count) for pair, count in counts.items() if count >= MIN_REPEATS and _is_term(pair)]
    return [pair for pair, _ in sorted(repeated, key=lambda pair_and_count: -pair_and_count[1])[:MAX_TERMS]]


def _is_term(words: Sequence[str]) -> bool:
    return (
        all(len(word) >= MIN_LETTERS and word.islower() and not is_sentence_opener(word) for word in words)
        and not all(is_common_word(word) for word in words)
        and not _NOT_LAST.fullmatch(words[-1])
    )
