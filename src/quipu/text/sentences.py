"""Sentences: a rule-based sentence splitter for any script; and questions with their answers, in lists of both."""

import re
from collections.abc import Iterator, Sequence

# How many characters a decision may look back and ahead. This keeps the work linear and every decision local.
_LOOK_BEHIND = 32
_LOOK_AHEAD = 200
_SHORT_LINE = 40
_SHORT_LINE_CJK = 20

_OPENERS = "\"'“‘„«‹([{「『【《〈（"
_CLOSERS = r"[\"'”’»›)\]}」』】》〉）*_]"
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
# Either a run of terminal marks, closing marks and footnote marks, or a line break and the space after it. The
# quantifiers are possessive (they never backtrack), so that no input makes the scan quadratic.
_BREAK = re.compile(rf"(?P<marks>[.!?…。！？｡؟۔।॥]++)(?:{_CLOSERS}|\[\d{{1,3}}\])*|\n\s*+")
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_WORD = re.compile(r"[^\W\d_][\w'’-]{0,30}")
_AFTER_STARTER = re.compile(r"[\s,]")
_LIST_ITEM = re.compile(
    r"[ \t]*(?:[-*+•‣◦▪–—]\s|\d{1,3}[.)]\s|\(?[a-zа-я\d]{1,2}\)\s|\[\d|#{1,6}\s|>|\|)", re.IGNORECASE
)
_SPEAKER = re.compile(r"[ \t]*(?![a-zа-яё])[^\W_][\w.'’-]{0,30}(?: [\w.'’()-]{1,30}){0,3}(?::(?=\s)|：)")
_HEADING = re.compile(r"#{1,6}\s")

# The marks of a question and of its answer, at the beginning of a line, in a list of both: "Q: …" and "A: …".
_MARK = r"\s*[*_]{{0,2}}(?:(?:{words})\s*\d{{0,3}}\s*[.:：)]|(?:{letters})\s*\d{{0,3}}[:：])[*_]{{0,2}}\s*\S"
ASKED = re.compile(_MARK.format(words="Q|Question|Вопрос|Frage|问题?|問題?", letters="В|F|P"))
ANSWERED = re.compile(_MARK.format(words="A|Answer|Ответ|Antwort|答案?|回答", letters="О|R"))
MAX_QUESTION_LINES = 6  # of a record: a question and its answer
_ASKING_HEADING = re.compile(r"(?:#{1,6}[ \t]+|\*\*)([^\n]*?[?？])[*_`]*[ \t]*$")
_QUESTION_COLUMN = re.compile(r"[|\s*_]*(?:questions?|вопросы?|fragen?|问题|問題|问|問)[*_]*\s*\|", re.IGNORECASE)
_FIRST_CELL = re.compile(r"\|?[ \t]*+([^|\n]*[^|\s])[ \t]*\|")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_SENTENCE_END = _words(
    "mr mrs ms messrs dr prof rev hon gen maj capt cmdr lt sgt cpl gov sen pres supt mt e.g i.e viz cf vs ca approx "
    "no nos nr vol vols pp fig figs eq eqs sec eds mme mlle mgr sra srta bzw d.h z.b "
    "т.е т.к см ср напр тов акад проф гр гл рис табл ул просп обл оз им св"
)
_SOMETIMES_SENTENCE_END = _words(
    "etc inc co ltd corp bros jr sr esq ph.d al st ft mm hr fr ed ch p b usw u.a "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "др пр т.н т.д т.п гг вв тыс млн млрд руб стр род ум"
)
_SENTENCE_STARTERS = _words(
    "the a an he she it they we you i his her its their our my this that these those there here in on at by for from "
    "with as if but and or so when while after before since during until although though however also then thus "
    "what who why how where which one some many most all both each no not now today later "
    "он она оно они мы вы я его её ее их этот эта это эти тот та те в во на по после до из от с со к о об при за "
    "но и а однако затем потом также так как когда если хотя там здесь где что кто все всё "
    "der die das ein eine er sie es wir und im am nach le la les un une il elle ils el los las en y"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the [start, end) span of each sentence of `text` in order. The spans cover all characters but spaces.

    A sentence ends at terminal punctuation that does not belong to an abbreviation, initial or decimal number. It also
    ends at a blank line, at a line break before a list item, a heading or a speaker's name, and after a line that is
    too short to be wrapped prose. Every decision looks at a bounded part of the text. So the work is linear, and an
    edit changes only the spans near it.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BREAK.finditer(text):
        ends = _ends_at_marks(text, match) if match["marks"] else _ends_at_line_break(text, match)
        if ends:
            _append(spans, text, start, match.end())
            start = match.end()
    _append(spans, text, start, len(text))
    return spans


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


def _ends_at_marks(text: str, match: re.Match[str]) -> bool:
    """Return whether the terminal marks of `match` end a sentence."""
    end, marks = match.end(), match["marks"]
    if end == len(text):
        return True
    if not text[end].isspace():
        return _ends_without_space(text, match)
    following = _first_after_space(text, end)
    ends_line = "\n" in text[end : end + 3]
    if text[following : following + 1].islower() and not ends_line:
        return False
    return marks != "." or not _is_abbreviation(text, match.start(), following)


def _ends_without_space(text: str, match: re.Match[str]) -> bool:
    """Return whether terminal marks without a space after them end a sentence.

    Full-width marks do, and so do "?" and "!" before a CJK character. Any mark does if the space was probably lost, as
    in "the end.Then it".
    """
    start, end, marks = match.start(), match.end(), match["marks"]
    if any(mark in "。！？｡؟۔।॥" for mark in marks):
        return True
    if any(mark in "!?" for mark in marks) and _CJK_CHARACTER.match(text, end):
        return True
    before = text[max(0, start - 3) : start]
    lost_space = len(before) == 3 and before.isalpha() and before.islower()
    return lost_space and text[end].isupper() and text[end + 1 : end + 2].islower()


def _first_after_space(text: str, start: int) -> int:
    """Return the position after spaces and opening quotes, at most `_LOOK_AHEAD` characters ahead."""
    limit = min(len(text), start + _LOOK_AHEAD)
    while start < limit and (text[start].isspace() or text[start] in _OPENERS):
        start += 1
    return start


def _is_abbreviation(text: str, stop: int, following: int) -> bool:
    """Return whether the full stop at `stop` belongs to the word before it and does not end a sentence."""
    before = text[max(0, stop - _LOOK_BEHIND) : stop]
    words = before.split()
    if not words or before[-1].isspace():
        return False
    word = words[-1].lstrip(_OPENERS)
    if word.isdigit():
        return _is_list_number(text, stop - len(word))
    key = word.casefold()
    if key in _NEVER_SENTENCE_END:
        return key != "no" or text[following : following + 1].isdigit()
    if key in _SOMETIMES_SENTENCE_END or (word[-1:].isalpha() and (len(word) == 1 or _is_dotted(word))):
        return not _CJK_CHARACTER.match(word) and not _starts_like_a_sentence(text, following)
    return False


def _is_dotted(word: str) -> bool:
    """Return whether `word` consists of letters with full stops between them, as in U.S or т.е."""
    return "." in word and all(len(part) == 1 and part.isalpha() for part in word.split("."))


def _is_list_number(text: str, start: int) -> bool:
    line = text.rfind("\n", max(0, start - _LOOK_BEHIND), start)
    reaches_line_start = line >= 0 or start <= _LOOK_BEHIND
    return reaches_line_start and not text[line + 1 : start].strip()


def _starts_like_a_sentence(text: str, start: int) -> bool:
    """Return whether the word at `start` often begins a sentence but never a name."""
    word = _WORD.match(text, start)
    return (
        word is not None
        and word.group().casefold() in _SENTENCE_STARTERS
        and (word.end() == len(text) or _AFTER_STARTER.match(text, word.end()) is not None)
    )


def _ends_at_line_break(text: str, match: re.Match[str]) -> bool:
    """Return whether the line break of `match` ends a sentence that has no terminal mark."""
    if "\n" in match.group()[1:]:
        return True
    following = match.start() + 1
    if _LIST_ITEM.match(text, following) or _SPEAKER.match(text, following) or " | " in _line_from(text, following):
        return True
    line_start = text.rfind("\n", max(0, match.start() - _LOOK_AHEAD), match.start()) + 1
    line = text[max(line_start, match.start() - _LOOK_AHEAD) : match.start()].strip()
    return _stands_alone(line, text[match.end() : match.end() + 1])


def _line_from(text: str, start: int) -> str:
    end = min(len(text), start + _LOOK_AHEAD)
    line_end = text.find("\n", start, end)
    return text[start : line_end if line_end >= 0 else end]


def _stands_alone(line: str, following: str) -> bool:
    """Return whether a sentence ends with `line`: it is a heading, a label, or too short to be wrapped prose."""
    if _HEADING.match(line) or line.endswith((":", "：")) or " | " in line:
        return True
    width = _SHORT_LINE_CJK if _CJK_CHARACTER.match(line[-1:]) else _SHORT_LINE
    return len(line) < width and not following.islower() and not line.endswith((",", "，", "、", ";"))


def record_questions(text: str, header: str = "") -> list[tuple[int, int]]:
    """Return the spans [start, end) of the questions in a text that the text answers itself, in order.

    They are "Q: …" above "A: …", headings with a question mark, and the cells of a column "Question". `header` is that
    of a table that began before the text.
    """
    lines = list(_lines(text))
    spans: list[tuple[int, int]] = []
    in_questions = bool(_QUESTION_COLUMN.match(header))
    for place, (start, line) in enumerate(lines):
        if mark := ASKED.match(line):
            if n_lines := lines_to_answer([below for _, below in lines[place + 1 : place + 1 + MAX_QUESTION_LINES]]):
                first, answer = start + mark.end() - 1, lines[place + n_lines][0]
                spans.append((first, first + len(text[first:answer].rstrip())))
        elif heading := _ASKING_HEADING.match(line):
            spans.append((start + heading.start(1), start + heading.end(1)))
        elif _QUESTION_COLUMN.match(line):
            in_questions = True
        elif in_questions and (cell := _FIRST_CELL.match(line)):
            if any(map(str.isalpha, cell[1])):
                spans.append((start + cell.start(1), start + cell.end(1)))
        else:
            in_questions = False
    return spans


def lines_to_answer(following: Sequence[str]) -> int:
    """Return after how many lines the answer to a question begins, by the lines that follow; 0 where there is none."""
    return next((n for n, line in enumerate(following, 1) if ANSWERED.match(line)), 0)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line
        start += len(line)
