"""Pattern names: titles and headings, names in quotation marks, numbered tables, speakers of a chat, and terms."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quipu.ingest.local.capitalised_names import find_capitalised
from quipu.ingest.local.lexicon import (
    is_common_word,
    is_cyrillic,
    is_function_word,
    is_sentence_opener,
    word_set,
    words,
)
from quipu.ingest.local.occurrences import Cue, Occurrence
from quipu.ingest.local.script_rules import chinese_rules, find_chinese_names, russian_rules, stem_name
from quipu.text.unicode import HAN, UNSPACED
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

MAX_TITLE_WORDS = 8
MAX_LENGTH = 80
MAX_MARKS = 8  # around the title in a line that is only a heading

_TRAILING_BRACKET = re.compile(r"(?<=\S)\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
# Paths, file names, dates and running numbers: "week1/20260105_1100", "report.pdf", "Novel-25646".
_CODE = re.compile(r"[/\\]|\w_\w|::|^\.\.|^:\w+:|\.\w{2,5}$|\d{4}[-./]?\d{2}[-./]?\d{2}|\d{5}|[-_](?!19|20)\d{4}$")
_EBOOK = re.compile(r"^The Project Gutenberg (?:e-?book|etext) of ", re.IGNORECASE)
_LATIN_WORD = re.compile(r"[A-Za-z]{2}")
_SYMBOLS = re.compile(r"[^\w\s.:：*#\"“”'’)\]»!?+%&]+\s*$")
_JOINT = re.compile(r"[:—–]|\b(?:and|und|et|и)\b")
_LETTER = re.compile(r"[^\W\d_]")
_HEADING = re.compile(r"#{1,6}\s+(.*\S)")
_TITLE_WORD = re.compile(r"\w[\w'’-]*")


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
    word = forms[0].casefold()
    if _NOT_IN_TITLE.search(name) or (len(forms) == 1 and is_common_word(word) and not is_function_word(word)):
        return False
    if "А" <= forms[0][0] <= "я":
        return True
    return 2 * sum(1 for form in forms if form[0].islower() and len(form) > 3) <= len(forms)


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


def find_in_title(title: str, text: str, text_names: Iterable[str] = ()) -> list[Occurrence]:
    """Return the title as a name and then the names inside it; nothing for a path, date, question or long sentence.

    A trailing bracket ("(film)") does not belong to the name. A name that occurs in `text` gets its span there.
    `text_names` are the Chinese names of the text: they show the parts of a Chinese title, which has no spaces.
    """
    name = _clean_title(_TRAILING_BRACKET.sub("", _EBOOK.sub("", title)))
    if not name or _CODE.search(title) or len(name.split()) > MAX_TITLE_WORDS or not _may_be_name(name, text):
        return []
    parts = _title_parts(name, text_names)
    cues = (Cue.SUBJECT, *[Cue.HEADING] * len(parts))
    inside = [_locate(part, text, cue) for part, cue in zip(parts, cues, strict=False)]
    return inside if _mixes_scripts(name) else [_locate(name, text, Cue.TITLE), *inside]


def _may_be_name(title: str, text: str) -> bool:
    """Return whether a title has a capital or no case, and is a phrase or common words only if the text repeats it.

    Capitals tell a phrase from a name in English titles only. Russian titles have them in the first word alone.
    """
    if title.islower() and not _UNSPACED.search(title):
        return False
    forms = _TITLE_WORD.findall(title)
    is_phrase = len(forms) > 1 and all(form.islower() and form.isascii() for form in forms[1:])
    if is_phrase or all(is_common_word(form.casefold()) for form in forms):
        return _stands_in_running_text(title, text)
    return True


def _stands_in_running_text(title: str, text: str) -> bool:
    """Return whether a line of the text holds the title and more."""
    name = title.casefold()
    return any(name in line and len(line) > len(name) + MAX_MARKS for line in text.casefold().splitlines())


def _mixes_scripts(title: str) -> bool:
    return _UNSPACED.search(title) is not None and _LATIN_WORD.search(title) is not None


def _clean_title(title: str) -> str:
    name = _SYMBOLS.sub("", " ".join(title.split())).strip(' .:：*_#"“”')
    return name if _LETTER.search(name) and len(name) <= MAX_LENGTH and not name.endswith(("?", "!", "？")) else ""


def _title_parts(title: str, text_names: Iterable[str]) -> list[str]:
    """Return the names that a title joins in their order, none if the title is a single name."""
    if _UNSPACED.search(title):
        names_inside = {name for name in text_names if name in title and name != title}
        return sorted(names_inside, key=lambda name: (title.find(name), name))
    parts = _names_inside(title)
    return [part for part in parts if part != title] if len(parts) > 1 or _JOINT.search(title) else []


def find_in_headings(headings: Sequence[str], text: str) -> list[Occurrence]:
    """Return the headings that are exactly one name ("Julius Caesar", but not "Early life")."""
    names = [_clean_title(heading) for heading in headings]
    return [_locate(name, text, Cue.HEADING) for name in names if name and _is_one_name(name, text)]


def headings_in(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the text of the Markdown headings of `text`; `spans` are the [start, end) of its sentences."""
    for start, end in spans:
        if text[start] == "#" and (match := _HEADING.match(text, start, end)):
            yield match.group(1)


def _is_one_name(heading: str, text: str) -> bool:
    """Return whether a heading is a single name: it has no common words, or the running text repeats it."""
    if _CODE.search(heading) or len(heading.split()) > MAX_TITLE_WORDS:
        return False
    names = _names_inside(heading)
    if names != [heading.removeprefix("The ")]:
        return False
    if _UNSPACED.search(heading) or (names[0].isalpha() and names[0][1:].islower()):
        return _stands_in_a_sentence(names[0], text)
    has_common_word = any(is_common_word(word.casefold()) for word in _TITLE_WORD.findall(names[0]))
    return not has_common_word or text.count(heading) > 1


def _stands_in_a_sentence(name: str, text: str) -> bool:
    """Return whether a name of one word is a known given name or place, or stands inside a sentence of the text."""
    form = name.casefold()
    if form in word_set("given_names") or stem_name(form) in word_set("places"):
        return True
    return re.search(rf"[^\W\d_][,，、]?\s?{re.escape(name)}|{re.escape(name)}[{HAN}]", text) is not None


def _names_inside(title: str) -> list[str]:
    occurrences = [*find_quoted(title), *find_capitalised(title, [(0, len(title))]), *find_chinese_names(title)]
    names: dict[str, None] = {}
    end = 0
    for occurrence in sorted(occurrences, key=lambda o: (o.start, -o.end)):
        if occurrence.start >= end:
            names[occurrence.name] = None
            end = occurrence.end
    return list(names)


def _locate(name: str, text: str, cue: Cue) -> Occurrence:
    """Return `name` with its first span in `text` as whole words, if necessary in another case, else with (0, 0)."""
    start = _find_whole_words(name, text)
    if start < 0:
        lower = text.lower()
        start = _find_whole_words(name.lower(), lower) if len(lower) == len(text) else -1
    return Occurrence(name, start, start + len(name), cue) if start >= 0 else Occurrence(name, 0, 0, cue)


def _find_whole_words(name: str, text: str) -> int:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before = text[start - 1 : start] if start else ""
        if _is_word_edge(before, name[0]) and _is_word_edge(text[end : end + 1], name[-1]):
            return start
        start = text.find(name, start + 1)
    return -1


def _is_word_edge(neighbour: str, edge: str) -> bool:
    """Return whether a word can begin or end between two characters. In unspaced scripts it can everywhere."""
    return not neighbour.isalnum() or not edge.isalnum() or _UNSPACED.match(edge) is not None
