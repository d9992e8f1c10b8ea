"""Occurrences: places where the prose of a chunk may name something, and the sentences that they lie in.

Prose is the text of a chunk without code, markup, addresses, diagrams and boilerplate. What is left keeps its place, so
that a span in the prose is a span in the chunk.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum

from quipu.ingest.local.lexicon import words
from quipu.text.sentences import sentence_spans

# Stands for one character that is not prose. It is no word, no space and no mark, so no name crosses it.
BLANK = "\x01"

_ANY = re.compile(r"[^\n]+")
_FENCED = re.compile(
    r"^[ \t>]*(`{3,5}|~{3,5})(?![`~])[^\n]*\n(?:(?!^[ \t>]*\1)[^\n]*\n)*(?:[ \t>]*\1[^\n]*|\Z)?", re.MULTILINE
)
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:_[^\n]*:|\|?[\w:+| -]+::)[^\n]*(?:\n[ \t]+:[\w-]+:[^\n]*)*", re.MULTILINE)
_LITERAL = re.compile(
    r"^(?P<indent>[ \t]*)(?:\.\. (?:code|code-block|sourcecode|parsed-literal|literalinclude|prompt|highlight)::[^\n]*"
    r"|[^\n]*::)[ \t]*\n(?P<body>(?:[ \t]*\n|(?P=indent)[ \t]+[^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|In \[\d+\]:|\$|#!)[ \t][^\n]*", re.MULTILINE)
# Only a line with one of these characters or words can be code. Most lines have none.
_LINE_WITH_SIGN = re.compile(
    r"^(?:[ \t]*(?:import|from|[-+=<>]{2})[ -]|[^\n]*?[=(){};<>@#─-╿▀-▟])[^\n]*$", re.MULTILINE
)
_CODE_LINE = re.compile(
    r"[ \t]*(?:"
    r"from [\w.]+ import [^\n]+|import [\w.*]+(?:, ?[\w.*]+| as \w+)*;?"
    r"|(?:(?:public|private|protected|static|const|async|virtual|inline|export|final|extern) )*"
    r"(?:def|class|struct|enum|union|namespace|void|function|func|fn|interface) [\w:]+ ?[({:<][^\n]*"
    r"|template ?<[^\n]*|typedef [^\n]*;|#[ \t]*(?:include|define|ifdef|ifndef|endif|pragma|undef)\b[^\n]*"
    r"|[\w.\[\]'\"$*&:-]+(?: [\w*&]+)? ?[+:]?= ?[^\s=][^\n]*"  # an assignment
    r"|[{}()\[\];,]+|[A-Za-z_][\w.]*\([^()\n]*\)|@[\w.]+(?:\([^\n]*\))?"  # brackets, a call, a decorator
    r"|(?=[^\n]*(?:\w\(|[=<>{}]|->|::))[^\n]*[;{}]"  # a statement
    r"|[^\n]*[─-╿▀-▟][^\n]*|[^\n]*(?:-{2,}\+-|-{2,}>|<-{2,}|={2,}>)[^\n]*"  # a diagram
    r")[ \t]*"
)
_COMMENT = re.compile(r"<!--.{0,4000}?-->|\{%.{0,400}?%\}|\{\{.{0,400}?\}\}", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,2000}>|<[\w.|/ -]{1,40}>")
_SCRIPT = re.compile(r"<(script|style|pre|svg)\b[^>]*>.{0,20000}?</\1>", re.DOTALL | re.IGNORECASE)
_IMAGE = re.compile(
    r"!\[[^\]\n]*\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])?|\[Illustration[^\]]{0,200}\]"
    r"|\[Picture: "  # what it shows is prose
)
_TARGET = re.compile(r"(?<=\])\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
_ADDRESS = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,10}://|www\.)[^\s<>\"'“”«»）)\]】，。；、]*[^\s<>\"'“”«»）)\]】，。；、.,:;!?]"
)
_MAIL_ADDRESS = re.compile(r"[\w.+-]++@[\w-]+\.[\w.-]*\w")
_EXTENSIONS = words(
    """
    md rst txt htm html css js jsx ts tsx json yaml yml toml xml csv tsv pdf png jpg jpeg gif svg ico webp mp3 mp4 wav
    sh bat cmd ps1 c cc cpp h hpp py ipynb java class jar go rs rb php ini cfg conf properties log zip gz tar bz2 exe
    dll so lock doc docx xls xlsx ppt pptx in am cmake tmpl tpl env sql db sqlite pem key crt
    """
)
_PATH = re.compile(r"(?<![\w./\\])(?:[A-Za-z]:)?[\w~$%-]*+(?:[./\\]++[\w$%*-]++)+[/\\]?", re.ASCII)
_ROOTED = re.compile(r"(?:[A-Za-z]:|~|\.{1,2})?[/\\]")
_LIBRARY = re.compile(r"[A-Z]\w*\.(?:js|go|rs|py)")  # "Node.js" is a name, no file
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_INLINE_CODE = re.compile(r"(`{1,2})(?!`)([^`\n]{1,200}?)\1(?![`_])")
_IDENTIFIER = re.compile(r"[~.@$]?[A-Za-zА-Яа-яЁё_][\w-]*(?:\.\w+)*(?:\(\))?")
_VARIABLE = re.compile(r"\$?[A-Z][A-Z0-9_]{3,}(?==)")
_UNDERLINED = re.compile(r"^[^\s|>#*-][^\n]{0,100}\n([=~^\"'*+#.-])\1{2,}[ \t]*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"[^\n]+(?:\n(?![ \t]*\n)[^\n]+)*")
_CAPITALS_ONLY = re.compile(r"^(?:[A-Z][\w-]*|[\d.,%*-]+)(?:[ \t]+(?:[A-Z][\w-]*|[\d.,%*-]+)){6,}[ \t]*$", re.MULTILINE)
_BOILERPLATE = re.compile(
    r"project gutenberg(?:-tm|™|\(tm\)|'s|’s| (?:electronic|licen[cs]e|e-?books?|literary|web|volunteers|etext))"
    r"|permission is hereby granted|redistributions? (?:and use )?in (?:source|binary)|redistributions? of source"
    r"|without warrant(?:y|ies)|warranties or conditions|warranties of merchantab|indemnify and hold"
    r"|(?:distributed|licensed) under the [\w ,.-]{0,60}licen[cs]e|use, modification,? and distribution"
    r"|all rights reserved|copyright (?:\(c\)|©|\d{4})|©|\(c\) \d{4}|copy of the licen[cs]e"
    r"|limited right of replacement|this ebook is for the use"
    r"|版权所有|保留所有权利|все права защищены|распространяется (?:на условиях|под лицензией)"
)
# One of these is in every boilerplate. A search for them is much faster than for the pattern.
_BOILERPLATE_WORDS = (
    "gutenberg", "permission", "redistribution", "warrant", "indemnify", "licen", "modification", "rights reserved",
    "copyright", "©", "(c)", "replacement", "ebook", "版权所有", "保留所有权利", "права защищены", "распространяется",
)  # fmt: skip
_EBOOK_START = re.compile(r"\A(?s:.*?)^\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]*", re.MULTILINE)
_EBOOK_END = re.compile(
    r"^(?:\*{3} ?END OF (?:THE|THIS) PROJECT GUTENBERG|END OF (?:THE )?PROJECT GUTENBERG)(?s:.*)",
    re.MULTILINE | re.IGNORECASE,
)

MAX_QUOTE_CHARS = 300


def prose(text: str) -> str:
    """Return `text` with everything that is not prose blanked. Line breaks stay, so the length is the same."""
    if "GUTENBERG" in text:
        text = _EBOOK_END.sub(_blank, _EBOOK_START.sub(_blank, text))
    text = _without_code(text)
    text = _without_markup(text)
    return _CAPITALS_ONLY.sub(_blank, _without_boilerplate(text))


def _blank(match: re.Match[str]) -> str:
    """Return BLANK for each character of a match but line breaks."""
    return _ANY.sub(lambda line: BLANK * len(line[0]), match[0])


def _without_boilerplate(text: str) -> str:
    lower = text.lower()
    if not any(word in lower for word in _BOILERPLATE_WORDS) or not _BOILERPLATE.search(lower):
        return text
    return _PARAGRAPH.sub(lambda match: _blank(match) if _BOILERPLATE.search(match[0].lower()) else match[0], text)


def _without_code(text: str) -> str:
    if "```" in text or "~~~" in text:
        text = _FENCED.sub(_blank, text)
    if "::" in text:
        text = _DIRECTIVE.sub(_blank, _LITERAL.sub(_blank_body, text))
    return _LINE_WITH_SIGN.sub(_blank_code, _PROMPT.sub(_blank, text))


def _blank_code(line: re.Match[str]) -> str:
    return _blank(line) if _CODE_LINE.fullmatch(line[0]) else line[0]


def _blank_body(literal: re.Match[str]) -> str:
    """Return a literal block with its code blanked, and the line before it as it is."""
    n_before = literal.start("body") - literal.start()
    return literal[0][:n_before] + _ANY.sub(lambda line: BLANK * len(line[0]), literal["body"])


def _without_markup(text: str) -> str:
    if "<" in text or "{" in text:
        text = _TAG.sub(_blank, _COMMENT.sub(_blank, _SCRIPT.sub(_blank, text)))
    if "[" in text:
        text = _TARGET.sub(_blank, _IMAGE.sub(_blank, text))
    if "_" in text:
        text = _OUTER_UNDERSCORE.sub(_blank, text)
    if "`" in text:
        text = _INLINE_CODE.sub(_blank_command, text)
    if "://" in text or "www." in text:
        text = _ADDRESS.sub(_blank, text)
    if "@" in text:
        text = _MAIL_ADDRESS.sub(_blank, text)
    return _PATH.sub(_blank_path, _UNDERLINED.sub(_blank, text))


def _blank_command(code: re.Match[str]) -> str:
    """Return inline code blanked but for an identifier, or a variable that gets a value: `PORT=<number>`."""
    if _IDENTIFIER.fullmatch(code[2]):
        return code[0]
    variable = _VARIABLE.match(code[2])
    n_before = code.start(2) - code.start() + variable.end() if variable else 0
    return code[0][:n_before] + BLANK * (len(code[0]) - n_before)


def _blank_path(path: re.Match[str]) -> str:
    """Return a path or file name blanked; words joined by dots or slashes ("TCP/IP") are returned as they are."""
    suffix = path[0].rpartition(".")[2].casefold()
    is_file = suffix in _EXTENSIONS and not _LIBRARY.fullmatch(path[0])
    return _blank(path) if is_file or _ROOTED.match(path[0]) else path[0]


class Cue(StrEnum):
    """The reason why a span of text looks like a name; the strongest reason first."""

    TITLE = "title"
    SUBJECT = "subject"  # the first name inside a longer title: what the page is about
    HEADING = "heading"
    SPEAKER = "speaker"
    QUOTED = "quoted"
    CAPITALS = "capitals"
    CHINESE = "chinese"
    SENTENCE_START = "sentence start"  # one capitalised word at the start of a sentence: weak
    UNKNOWN_CHINESE = "unknown chinese"  # unknown characters between common Chinese words: weak
    TERM = "term"


CUE_RANKS = {cue: rank for rank, cue in enumerate(Cue)}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at [start, end) of the chunk's text. `type` is its entity type if the cue shows it, else "".

    A name that stands only in the title or in a heading has the span (0, 0).
    """

    name: str
    start: int
    end: int
    cue: Cue
    type: str = ""


class SentenceIndex:
    """The sentences of the prose of one chunk, found by position. `original` is the chunk's text, which is quoted."""

    def __init__(self, text: str, original: str = "") -> None:
        self.text = text
        self.spans = sentence_spans(text)
        self._original = original or text
        self._starts = [start for start, _ in self.spans]
        self._quotes: dict[int, str] = {}

    def index_at(self, position: int) -> int:
        """Return the index of the sentence that holds the character at `position`, or of the last one before it."""
        return max(bisect_right(self._starts, position) - 1, 0)

    def quote(self, index: int) -> str:
        """Return the sentence on one line, "" if most of it is no prose.

        A sentence longer than MAX_QUOTE_CHARS is cut after a word.
        """
        if index not in self._quotes:
            start, end = self.spans[index]
            is_prose = 2 * self.text.count(BLANK, start, end) < end - start
            self._quotes[index] = _shorten(self._original[start:end]) if is_prose else ""
        return self._quotes[index]


def _shorten(sentence: str) -> str:
    line = " ".join(sentence.split())
    if len(line) <= MAX_QUOTE_CHARS:
        return line
    cut = line[: MAX_QUOTE_CHARS - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > MAX_QUOTE_CHARS // 2 else cut) + "…"
