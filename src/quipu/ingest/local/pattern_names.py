"""Pattern names: names in quotation marks, numbered tables, speakers of a chat, and lower-case terms."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quipu.ingest.local.lexicon import is_common_word, is_cyrillic, is_function_word, is_sentence_opener, words
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.ingest.local.script_rules import chinese_rules, russian_rules
from quipu.text.unicode import UNSPACED
from quipu.text.words import MAX_ACRONYM_LENGTH

MAX_WORDS = 10
MAX_UNSPACED_CHARS = 12
MIN_SPEECH_SHARE = 0.25
MIN_REPEATS = 3
MAX_TERMS = 4
MIN_LETTERS = 3

TABLE = "Data"  # the entity type of a table
_TABLE = re.compile(
    r"(?:(?P<english>\bTable|(?<=\bsee )table|(?<=\bin )table)|(?P<russian>\b[Тт]аблиц[аеуы]|\bтабл\.)"
    r"|(?P<chinese>(?<![\u3400-\u9fff])表|[见如]表))[ \u00a0]?(?P<number>\d+(?:[.-]\d+)*)"
)
_CAPTIONED_TABLE = re.compile(
    r"^\W{0,4}(?P<label>(?:Table|Таблица|表)[ \u00a0]?\d+(?:[.-]\d+)*)\W{0,5}(?P<caption>[^\n|]{0,200})\n\s*"
    r"(?P<header>[^\n|]*\|[^\n]*)(?:\n\f?[^\n|]*\|[^\n]*)+",
    re.MULTILINE,
)
_MARKS = '«»“”„"《》〈〉「」『』'
_QUOTED = re.compile(rf"([«“„\"《〈「『])([^{_MARKS}\n]{{1,80}})([»”“\"》〉」』])")
_CLOSING_MARKS = {"«": "»", "“": "”", "„": "“”", '"': '"', "《": "》", "〈": "〉", "「": "」", "『": "』"}
_TITLE_MARKS = frozenset("《〈")
_SENTENCE = re.compile(r"[.…。！，；：;:]$|[,.;:!?] [a-zа-яё]|\w{4}[.!?] |[，。！？；]")
_NOT_IN_TITLE = re.compile(r"[\x01`<>{}|=\\\[\]%$#]|\?$")
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
_TERM_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DETERMINERS = words("the a an its his her their this that these those any each all no")
_AFTER_NOUN = words("of in on at by for from with to and or is are was were в во на с и или для из от по к")
_NOT_LAST = re.compile(r"\w+(?:ly|ed|ing|ous|ive|ful|ся|ть|ый|ий|ая|ое|ые|ого|ых|но)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionedTable:
    """A table of a chunk with its number: the name of its entity, its caption, its header, and where its rows stand."""

    name: str
    caption: str
    header: str
    start: int
    end: int


def find_tables(text: str, title: str) -> Iterator[Occurrence]:
    """Yield what refers to a numbered table, as "Table 3", under a name with the title, since others have one, too."""
    if title:
        for match in _TABLE.finditer(text):
            yield Occurrence(_table_name(match, title), match.start(), match.end(), Cue.QUOTED, TABLE)


def captioned_tables(text: str, title: str) -> Iterator[CaptionedTable]:
    """Yield the tables that stand just below a line that numbers them, as "Table 3: Fees"."""
    for match in _CAPTIONED_TABLE.finditer(text) if title and "|" in text else ():
        label = _TABLE.match(text, match.start("label"))
        if label is not None:
            yield CaptionedTable(
                name=_table_name(label, title),
                caption=" ".join(match["caption"].split()),
                header=" ".join(match["header"].split()),
                start=match.start("header"),
                end=match.end(),
            )


def _table_name(match: re.Match[str], title: str) -> str:
    return f"{'Table' if match['english'] else 'Таблица' if match['russian'] else '表'} {match['number']} ({title})"


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
    forms = _WORD.findall(name)
    if not forms or len(name) < 2 or len(forms) > MAX_WORDS or not (forms[0][0].isupper() or name[0].isdigit()):
        return False
    if _NOT_IN_TITLE.search(name) or (len(forms) == 1 and _is_plain_word(forms[0].casefold())):
        return False
    if "А" <= forms[0][0] <= "я":
        return True
    return 2 * sum(1 for form in forms if form[0].islower() and len(form) > 3) <= len(forms)


def _is_plain_word(form: str) -> bool:
    return is_common_word(form) and not is_function_word(form)


def find_speakers(text: str) -> Iterator[Occurrence]:
    """Yield the speakers of a chat, as in "Maya: Hey!" or "小明：你好".

    In a chat at least a quarter of the lines with a label read like speech.
    """
    lines = [match for match in _SPEAKER_LINE.finditer(text) if _is_speaker(match["name"])]
    if sum(_SPEECH.search(match["speech"]) is not None for match in lines) < MIN_SPEECH_SHARE * len(lines):
        return
    for match in lines:
        yield Occurrence(match["name"], match.start("name"), match.end("name"), Cue.SPEAKER, "Person")


def _is_speaker(name: str) -> bool:
    if _HAN.fullmatch(name):
        return len(name) <= 4 and not chinese_rules().is_common(name)
    forms = name.split()
    is_shouted = len(name) > MAX_ACRONYM_LENGTH and name.isupper()
    return all(form[0].isupper() for form in forms) and not is_shouted and not is_common_word(forms[-1].casefold())


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
    """Return the most frequent pairs of consecutive words; equals in order of first occurrence.

    A pair is no term if an article or one and the same word follows it in most places: "path supports | the",
    "redundant current | directory".
    """
    tokens = text.split()
    counts = Counter(pairwise(tokens))
    repeated = {pair: count for pair, count in counts.items() if count >= MIN_REPEATS and _is_term(pair)}
    if not repeated:
        return []
    followers: dict[tuple[str, str], Counter[str]] = {pair: Counter() for pair in repeated}
    for pair, following in zip(pairwise(tokens), tokens[2:], strict=False):
        if pair in followers and following[0].isalpha() and following not in _AFTER_NOUN:
            followers[pair]["the" if following in _DETERMINERS else following] += 1
    terms = [pair for pair, count in repeated.items() if 2 * max(followers[pair].values(), default=0) <= count]
    return sorted(terms, key=lambda pair: -repeated[pair])[:MAX_TERMS]


def _is_term(forms: Sequence[str]) -> bool:
    return (
        all(len(form) >= MIN_LETTERS and form.islower() and not is_sentence_opener(form) for form in forms)
        and all(_TERM_WORD.fullmatch(form) for form in forms)
        and not (is_cyrillic(forms[0]) and russian_rules().is_verb(forms[0]))
        and not all(is_common_word(form) for form in forms)
        and not _NOT_LAST.fullmatch(forms[-1])
    )
