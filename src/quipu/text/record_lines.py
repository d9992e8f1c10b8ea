"""Record lines: a line of a model's reply split into the kind of its record and its fields, for any separator."""

import html
import re
from dataclasses import dataclass
from enum import StrEnum

MAX_LINE_CHARS = 200_000
MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 2_000
MAX_SEPARATORS = 5  # a line with more may hold several records; a claim has six, but it is not split


class RecordKind(StrEnum):
    """The kind of a record: what it states."""

    ENTITY = "entity"
    RELATION = "relation"
    ALIAS = "alias"
    CLAIM = "claim"


_KIND_WORDS = {
    RecordKind.ENTITY: "entities entity nodes node 实体 實體 エンティティ 개체 엔티티 сущности сущность entités entité "
    "entidades entidad entidade entitäten entität entità",
    RecordKind.RELATION: "relationships relationship relations relation edges edge 关系 關係 関係 관계 отношения "
    "отношение связи связь relaciones relación relações relação beziehungen beziehung relazioni relazione",
    RecordKind.ALIAS: "aliases alias 别名 別名 별칭 псевдонимы псевдоним",
    RecordKind.CLAIM: "claims claim 声明 聲明 主张 主張 утверждения утверждение",
}
_KIND_BY_WORD = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}
_KEYWORD = "|".join(_KIND_BY_WORD)
_OPENING = r"[\s<>*•·–—#+|(\[{\"'“”‘’«`\\-]"
_CLOSING = r"[\"'“”‘’»`*\])]"

# Separators: <|>, also doubled, with signs or words inside, or only half of it. In <|Person|> the word is a field.
_FILLED = re.compile(
    r"</?\|+(?:(?:#+|sep|tuple_delimiter|[/*=:,.-])\|*)?>|<(?:#+|sep|tuple_delimiter)?\|*>|\{tuple_delimiter\}",
    re.IGNORECASE,
)
_ANGLE = re.compile(r"<\|>|</?\|+|(?<!\|)\|+>")
_ANGLE_OR_BAR = re.compile(rf"{_ANGLE.pattern}|\|")
_BAR = re.compile(r"\|+")
_TAB = re.compile(r"\t+")
_COLONS = re.compile(r"::+")
_QUOTED = re.compile(r"\s{0,8}(?:\"([^\"]*)\"|'([^']*)'(?=\s{0,8}(?:[,)\]]|$))|“([^”]*)”|([^,]+))")

_RECORD_START = re.compile(
    rf"{_OPENING}{{0,40}}(?:\d{{1,3}}\s?[.)、:：]\s{{0,4}})?[\s*(\[\"'“‘`|]{{0,12}}"
    rf"(?P<word>{_KEYWORD})(?:[ _]?#?\d{{1,3}})?(?P<close>{_CLOSING}{{0,6}})\s{{0,4}}(?P<after>[<|\t,:：{{(-])",
    re.IGNORECASE,
)
_HEADING = re.compile(
    rf"{_OPENING}{{0,12}}({_KEYWORD}){_CLOSING}{{0,6}}\s?[:：]?{_CLOSING}{{0,6}}\s{{0,8}}", re.IGNORECASE
)
_NEXT_RECORD = re.compile(
    r"#{2,}|(?<=\))\s{0,3}[,;]?\s{0,3}(?=\()"
    rf"|(?<=[\s)#;}}\].。])(?=[(\"'“*]{{0,4}}(?:{_KEYWORD})[\"'”*]{{0,3}}\s?<[|#])",
    re.IGNORECASE,
)
_END_WORD = r"(?:done|completed?|completion|end|eof|finish(?:ed)?|stop|endoftext)"
_END_MARK = re.compile(rf"(?:<\|? ?{_END_WORD} ?\|?>|\{{completion_delimiter\}})[\s)#\"'`]*$", re.IGNORECASE)
_END_LINE = re.compile(rf"[\s*`#(\"'-]{{0,8}}(?:{_END_WORD}|完成|结束|結束)[\s*`.)\"'。]{{0,8}}", re.IGNORECASE)
_FULL_WIDTH = str.maketrans("｜＜＞", "|<>")
_OUTER_MARKS = " \t\r\n\ufeff|\"'“”‘’«»`「」『』"
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The fields of one record; `kind` is None if the line does not state it."""

    kind: RecordKind | None
    values: tuple[str, ...]


def normalize_separators(line: str) -> str:
    """Return the line with every form of the separator as "<|>" and with HTML entities decoded."""
    line = line[:MAX_LINE_CHARS].translate(_FULL_WIDTH)
    return _FILLED.sub("<|>", html.unescape(line) if "&" in line else line)


def split_records(line: str) -> list[str]:
    """Return the records of a line, which may hold several."""
    n_separators = max(line.count("<|"), line.count("|>"))
    if n_separators > MAX_SEPARATORS or (n_separators and "##" in line):
        return [part for part in _NEXT_RECORD.split(line) if part.strip()]
    return [line]


def strip_end_mark(line: str) -> tuple[str, bool]:
    """Return the line without a mark that ends the reply, and whether the line held such a mark."""
    match = _END_MARK.search(line)
    if match:
        return line[: match.start()], True
    return ("", True) if _END_LINE.fullmatch(line) else (line, False)


def heading_kind(line: str) -> RecordKind | None:
    """Return the kind of the records below a heading such as "**Entities:**", None if it is another line."""
    match = _HEADING.fullmatch(line)
    return _KIND_BY_WORD[match[1].casefold()] if match else None


def begins_record(line: str) -> bool:
    """Return whether the line begins with the word for a kind of record and a separator."""
    return _match_start(line) is not None


def split_fields(line: str) -> RecordFields | None:
    """Return the fields of a record, not cleaned; None if the line is not a record."""
    start = _match_start(line)
    if start is None:
        if _ANGLE.search(line):
            values = _split(_ANGLE, line)
        else:  # a row of a Markdown table
            values = _split(_BAR, line) if line.lstrip().startswith("|") else ()
        return RecordFields(None, values) if len(values) > 1 else None
    values = _split_after_kind(line[start.end("close") :], start["after"])
    return RecordFields(_KIND_BY_WORD[start["word"].casefold()], values) if values else None


def _match_start(line: str) -> re.Match[str] | None:
    """Return the match of the start of a record; a JSON key does not start a record."""
    start = _RECORD_START.match(line)
    is_json_key = start is not None and start["after"] in ":：" and start["close"].rstrip("*`)]")
    return None if is_json_key else start


def _split_after_kind(rest: str, separator: str) -> tuple[str, ...]:
    """Return the fields in `rest`, which begins with the `separator` that follows the kind."""
    rest = rest.lstrip(" :：-") if separator in ":：-" else rest
    if _ANGLE.search(rest):
        values = _split(_ANGLE, rest)
        return values if len(values) > 2 else _split(_ANGLE_OR_BAR, rest)
    for pattern in (_BAR, _TAB, _COLONS):
        if pattern.search(rest):
            return _split(pattern, rest)
    if separator in ",(":
        groups = _QUOTED.findall(rest.lstrip(",( ").rstrip(" ,)]}"))
        return tuple(value for value in map("".join, groups) if value.strip())
    return ()


def _split(separator: re.Pattern[str], text: str) -> tuple[str, ...]:
    values = [value.strip() for value in separator.split(text)]
    while values and not values[0].strip(_OUTER_MARKS):
        del values[0]
    while values and not values[-1].strip(_OUTER_MARKS + "()#"):
        del values[-1]
    return tuple(values)


def clean_text(value: str) -> str:
    """Return a field as one line, without the quotes and brackets around it."""
    value = _without_record_end(value[: 2 * MAX_TEXT_CHARS].strip(_OUTER_MARKS))
    while len(value) > 4 and value[:2] == value[-2:] and value[:2] in ("**", "__"):
        value = value[2:-2]
    text = _SPACE.sub(" ", value.strip(_OUTER_MARKS))[:MAX_TEXT_CHARS]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def clean_name(value: str) -> str:
    """Return a name without the quotes and brackets around it.

    Returns "" if the text is not a name: it has no letter or digit, is a placeholder in brackets, or is too long.
    """
    name = clean_text(value).strip("*_").rstrip(",;:，；：").strip()
    if len(name) > MAX_NAME_CHARS or not any(char.isalnum() for char in name):
        return ""
    return "" if name[0] + name[-1] in ("<>", "{}", "[]") else name


def _without_record_end(value: str) -> str:
    """Return a field without what closes its record: a parenthesis that it does not open, or the mark "##"."""
    value = _without_end_signs(value)
    while value.endswith((")", "]")) and value.count(value[-1]) > value.count("(" if value[-1] == ")" else "["):
        value = _without_end_signs(value[:-1])
    return value.strip(_OUTER_MARKS)


def _without_end_signs(value: str) -> str:
    value = value.rstrip(",; \t")
    return value.rstrip("#,; \t") if value.endswith("##") else value
