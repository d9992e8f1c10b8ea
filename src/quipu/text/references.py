"""References: the keys under which a passage is found by what names it, and what another passage refers to by.

A passage is named by its headings, the terms that it defines, the captions and rows of its tables, and, if it is the
first of its document, by the title. Another one refers to it by the same phrase ("see Timeouts", "Table 2") or by a
link in Markdown. A phrase consists of the content terms of a name, so that other forms of its words refer to it, too.

The numbers of sections are also read as questions and headings write them ("stave two", "III", "第十二回"). The index
has no keys of these forms.
"""

import posixpath
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from quipu.model.ids import digest
from quipu.text.unicode import is_unspaced
from quipu.text.words import Words, content_terms, content_terms_of

MAX_PHRASE_TERMS = 5
_MAX_NAME_CHARS = 60  # of a line that is a heading only by standing alone
_MAX_LINE_CHARS = 200  # the rest of a longer line is not read for names
# Before a phrase, before the digest of the id of a document that begins here, and before that of one that is linked to.
# No term of full text begins with one of them.
NAMED, BEGINS, LINKS_TO = REFERENCE_MARKS = ("=", "/", ">")

_HEADING = re.compile(r"\s{0,3}(?:#{1,6} +|={1,5} +)(.+?)[\s#=]*$")
_UNDERLINE = re.compile(r"\s{0,3}([=~^*-])\1{2,}\s*$")
_SECTION_NUMBER = re.compile(r"(\d+(?:\.\d+){0,4}|[A-Z]\.\d+(?:\.\d+)*)[.)、]?\s+(?=\S)")
_NUMBERED = re.compile(
    r"(?:(?P<table>(?<!\w)(?:tables?|tab\.|табл\w*\.?)|表)"
    r"|(?P<figure>(?<!\w)(?:figures?|figs?\.?|рисун\w*|рис\.?)|图)"
    r"|(?P<section>(?<!\w)(?:sections?|sec\.|chapters?|раздел\w*|глав\w*)|§|第)"
    r"|(?P<appendix>(?<!\w)(?:appendix|приложени\w*)|附录))"
    r"\s{0,2}(?P<number>\d+(?:[.-]\d+){0,4}|(?-i:[A-ZА-Я])(?!\w)(?:\.\d+)*)",
    re.IGNORECASE,
)
_ITEM = r"\s*(?:[-*+•] +)?"
# "**Latency**: …", "`--all` – …"; "Latency — …", "A latency is the …".
_MARKED_TERM = re.compile(rf"{_ITEM}(\*\*|__|``?)([^*_`]{{2,60}})\1\s*(?:\([^)]{{1,40}}\))?\s*[:：—–-]")
_TERM = re.compile(
    rf"{_ITEM}(?:An? |The )?([^\W\d_][^.,:;!?|—–]{{1,40}}?)"
    r"(?: [—–] \S| — это | (?:is|are|means) (?:an?|the|any|one) |是(?=一|指|用))"
)
_LINK = re.compile(
    r"\]\(<?(?![a-z][a-z+.-]*:)([^)(\[\s#>]{0,200})(?:#([^)(\[\s>]{0,100}))?>?(?:\s+\"[^\"]{0,200}\")?\)"
)
_NUMBER_WORDS = (
    *("one|first|перв", "two|second|втор", "three|third|трет", "four|fourth|четверт", "five|fifth|пят"),
    *("six|sixth|шест", "seven|seventh|седьм", "eight|eighth|восьм", "nine|ninth|девят", "ten|tenth|десят"),
    *("eleven|eleventh|одиннадцат", "twelve|twelfth|двенадцат"),
)
_NUMBER_BY_WORD = {word: str(n) for n, words in enumerate(_NUMBER_WORDS, 1) for word in words.split("|")}
_CARDINALS = "|".join(words.split("|")[0] for words in _NUMBER_WORDS)
_ROMAN = r"(?=[clxvi])c{0,3}(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_ROMAN_HEADING = re.compile(rf"({_ROMAN})(?:[.)]\s|[.)]?\s*$)", re.IGNORECASE)
_WORDS = "|".join(_NUMBER_BY_WORD).replace("четверт", "четв[её]рт")
_NUMBER = rf"\d{{1,3}}(?:\.\d{{1,3}}){{0,4}}|{_ROMAN}|(?:{_WORDS})[а-я]{{0,4}}"
_KIND = (
    r"chapter|section|part|stave|act|book|canto|scene|appendix|volume|(?:глав|раздел|част|акт|книг|том|приложени)\w*"
)
NUMBERED_SECTION = re.compile(
    rf"(?<!\w)(?P<kind>{_KIND})\s+(?P<number>{_NUMBER})(?!\w)"
    rf"|(?<!\w)(?!(?:{_CARDINALS})\s)(?P<number_before>{_NUMBER})(?:st|nd|rd|th|-?[а-я]{{1,3}})?\s+(?P<kind_after>{_KIND})(?!\w)"
    r"|第(?P<number_han>[\d零〇一二三四五六七八九十百]{1,6})(?P<kind_han>[章回节節卷部篇])",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.!?;:。！？；：]\s|[。！？；]|\n\s*\n")
_END_MARKS = tuple(".!?:;,。！？：；，…")


class References(NamedTuple):
    """What a text refers to: the passages under a key, whatever their document, or those of one document."""

    keys: set[str]
    keys_in_document: set[tuple[str, str]]


def reference_keys(text: str, document_id: str, title: str, *, is_first: bool) -> list[str]:
    """Return the distinct keys under which full text has a passage.

    `is_first` says whether it is the first passage of its document.
    """
    titles = [re.sub(r"\s*[(（].*", "", title)] if is_first else []
    names = [_phrase(name) for name in (*titles, *_names(text))]
    linked = [document_key(LINKS_TO, target) for target, _ in _links(text, document_id) if target != document_id]
    begins = [document_key(BEGINS, document_id)] if is_first else []
    return list(dict.fromkeys([*(NAMED + name for name in (*names, *_numbers(text)) if name), *linked, *begins]))


def references_in(text: str, words: Words, document_id: str) -> References:
    """Return what a passage with these words refers to: by its phrases of at most `MAX_PHRASE_TERMS` content terms, and
    by links.

    A number ("Table 2") means a passage of the same document. The passages that link to this document are among them.
    """
    keys = {document_key(LINKS_TO, document_id)}
    keys_in_document = {(NAMED + _number(match), document_id) for match in _NUMBERED.finditer(text)}
    for target, section in _links(text, document_id):
        if section:
            keys_in_document.add((NAMED + section, target))
        else:
            keys.add(document_key(BEGINS, target))
    clause_ends = [bisect_left(words.starts, end.start()) for end in _CLAUSE_END.finditer(text)]
    for begin, end in pairwise([0, *clause_ends, len(words)]):
        terms = content_terms(words[begin:end])
        for start, first in enumerate(terms):
            phrase = NAMED + first
            keys.add(phrase)
            for term in terms[start + 1 : start + MAX_PHRASE_TERMS]:
                phrase += f" {term}"
                keys.add(phrase)
    return References(keys, keys_in_document)


class SectionNumber(NamedTuple):
    """The number of a section in digits ("2", "4.1"), and the beginning of what it is called ("cha"), or ""."""

    kind: str
    number: str


def section_number(text: str) -> SectionNumber | None:
    """Return the number of the first section that a text names: "chapter two", "III глава", "第十二回"."""
    match = NUMBERED_SECTION.search(text)
    if not match:
        return None
    kind = match["kind"] or match["kind_after"] or match["kind_han"]
    number = match["number"] or match["number_before"] or match["number_han"]
    return SectionNumber(kind.casefold()[:3], _in_digits(number))


def number_of_heading(heading: str) -> SectionNumber | None:
    """Return the number that a heading begins with: of a section, or a bare one ("3.1 Limits", "IV")."""
    bare = heading.lstrip("#*_= ")
    if NUMBERED_SECTION.match(bare):
        return section_number(bare)
    if match := _SECTION_NUMBER.match(bare):
        return SectionNumber("", match[1])
    roman = _ROMAN_HEADING.match(bare)
    return SectionNumber("", _in_digits(roman[1])) if roman else None


def _in_digits(written: str) -> str:
    """Return a number in digits: "4" for "IV", "fourth", "четвёртая" and "四"."""
    number = unicodedata.normalize("NFKC", written).casefold().replace("ё", "е")
    if number[0].isdigit():
        return number
    if word := next((word for word in _NUMBER_BY_WORD if number.startswith(word)), ""):
        return _NUMBER_BY_WORD[word]
    total, digit = 0, 0
    if number.isascii():
        values = [_ROMAN_VALUES.get(letter, 0) for letter in number]
        return str(sum(-value if value < following else value for value, following in pairwise([*values, 0])))
    for value in (int(unicodedata.numeric(character, 0)) for character in number):
        total, digit = (total + max(digit, 1) * value, 0) if value >= 10 else (total, value)
    return str(total + digit)


def document_key(mark: str, document_id: str) -> str:
    """Return a key for a document, whose id may be long or hold any character."""
    return mark + digest(document_id)[:16]


def words_of(phrase: str, text: str) -> str:
    """Return the first words of `text` that make this phrase; the phrase itself if accents or scripts differ."""
    terms = phrase.split(" ")
    if all(map(is_unspaced, terms)):
        return "".join(term[0] for term in terms[:-1]) + terms[-1]
    pattern = r"\W+(?:\w+\W+){0,3}?".join(rf"{re.escape(term)}\w*" for term in terms)
    match = re.search(rf"(?<!\w){pattern}", text, re.IGNORECASE)
    return " ".join(match[0].split()) if match else phrase


def _phrase(name: str) -> str:
    """Return the content terms of a name, "" if it has too many or no letter."""
    terms = content_terms_of(name)
    has_letter = any(not term.isdigit() for term in terms)
    return " ".join(terms) if has_letter and len(terms) <= MAX_PHRASE_TERMS else ""


def _links(text: str, document_id: str) -> Iterator[tuple[str, str]]:
    """Yield the links of a Markdown text to documents: the id of each, and the phrase of the section or ""."""
    for path, section in _LINK.findall(text):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(document_id), path)) if path else document_id
        yield target, _phrase(section.replace("-", " "))


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers of the tables, figures and sections that have their caption or heading in a text."""
    for line in text.splitlines():
        bare = line[:_MAX_LINE_CHARS].lstrip("#*_= ")
        if match := _NUMBERED.match(bare):
            yield _number(match)
        elif match := _SECTION_NUMBER.match(bare) if len(bare) <= _MAX_NAME_CHARS else None:
            yield f"section {match[1]}"


def _number(match: re.Match[str]) -> str:
    """Return the number of a table, figure, section or appendix with its kind: "table 2"."""
    kind = next(kind for kind in ("table", "figure", "section", "appendix") if match[kind])
    return f"{kind} {match['number']}"


def _names(text: str) -> Iterator[str]:
    """Yield what names a passage: headings, defined terms, and the first cells of rows."""
    lines = ["", *(line[:_MAX_LINE_CHARS] for line in text.splitlines()), ""]
    for (before, line), following in zip(pairwise(lines), lines[2:], strict=False):
        if not line or line.isspace():
            continue
        heading = _HEADING.match(line)
        if heading or _UNDERLINE.match(following) or (not before.strip() and _stands_alone(line)):
            yield _SECTION_NUMBER.sub("", (heading[1] if heading else line).strip(), count=1)
        elif term := _MARKED_TERM.match(line):
            yield term[2]
        elif term := _TERM.match(line):
            yield term[1]
        elif "|" in line and any(map(str.isalpha, cell := line.strip("| ").partition("|")[0])):
            yield cell


def _stands_alone(line: str) -> bool:
    """Return whether a line below a blank one may be a heading or a term above its definition."""
    return len(line) <= _MAX_NAME_CHARS and "|" not in line and not line.rstrip().endswith(_END_MARKS)
