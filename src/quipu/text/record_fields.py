"""Record fields: a line of a model's reply as the kind of record it is and its fields, whatever separates them."""

import html
import re
from dataclasses import dataclass
from enum import StrEnum

MAX_LINE_CHARS = 200_000
MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 2_000
MAX_SEPARATORS = 5  # of one record, a relation; a claim's sixth does no harm


class Kind(StrEnum):
    """What a record tells of."""

    ENTITY = "entity"
    RELATION = "relation"
    ALIAS = "alias"
    CLAIM = "claim"


_WORDS = {
    Kind.ENTITY: "entities entity nodes node 实体 實體 エンティティ 개체 엔티티 сущности сущность entités entité "
    "entidades entidad entidade entitäten entität entità",
    Kind.RELATION: "relationships relationship relations relation edges edge 关系 關係 関係 관계 отношения отношение "
    "связи связь relaciones relación relações relação beziehungen beziehung relazioni relazione",
    Kind.ALIAS: "aliases alias 别名 別名 별칭 псевдонимы псевдоним",
    Kind.CLAIM: "claims claim 声明 聲明 主张 主張 утверждения утверждение",
}
_KIND_BY_WORD = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_KEYWORD = "|".join(_KIND_BY_WORD)
_OPENING = r"[\s<>*•·–—#+|(\[{\"'“”‘’«`\\-]"
_CLOSING = r"[\"'“”‘’»`*\])]"

# Separators: <|>, also doubled, filled or spelled out, and cut in half. A word inside, as in <|Person|>, is a field.
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

_HEAD = re.compile(
    rf"{_OPENING}{{0,40}}(?:\d{{1,3}}\s?[.)、:：]\s{{0,4}})?[\s*(\[\"'“‘`|]{{0,12}}"
    rf"(?P<word>{_KEYWORD})(?:[ _]?#?\d{{1,3}})?(?P<close>{_CLOSING}{{0,6}})\s{{0,4}}(?P<after>[<|\t,:：{{(-])",
    re.IGNORECASE,
)
_HEADING = re.compile(
    rf"{_OPENING}{{0,12}}({_KEYWORD}){_CLOSING}{{0,6}}\s?[:：]?{_CLOSING}{{0,6}}\s{{0,8}}", re.IGNORECASE
)
_RESTART = re.compile(
    r"#{2,}|(?<=\))\s{0,3}[,;]?\s{0,3}(?=\()"
    rf"|(?<=[\s)#;}}\].。])(?=[(\"'“*]{{0,4}}(?:{_KEYWORD})[\"'”*]{{0,3}}\s?<[|#])",
    re.IGNORECASE,
)
_DONE_WORD = r"(?:done|completed?|completion|end|eof|finish(?:ed)?|stop|endoftext)"
_DONE_AT_END = re.compile(rf"(?:<\|? ?{_DONE_WORD} ?\|?>|\{{completion_delimiter\}})[\s)#\"'`]*$", re.IGNORECASE)
_DONE_LINE = re.compile(rf"[\s*`#(\"'-]{{0,8}}(?:{_DONE_WORD}|完成|结束|結束)[\s*`.)\"'。]{{0,8}}", re.IGNORECASE)
_WIDE = str.maketrans("｜＜＞", "|<>")
_OUTER = " \t\r\n\ufeff|\"'“”‘’«»`「」『』"
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Fields:
    """A line taken apart; `kind` is None where the line does not say it."""

    kind: Kind | None
    values: tuple[str, ...]


def plain_line(line: str) -> str:
    """Return the line with separators and HTML entities as they should be."""
    line = line[:MAX_LINE_CHARS].translate(_WIDE)
    return _FILLED.sub("<|>", html.unescape(line) if "&" in line else line)


def split_records(line: str) -> list[str]:
    """Return the records of a line that holds several."""
    n_separators = max(line.count("<|"), line.count("|>"))
    if n_separators > MAX_SEPARATORS or (n_separators and "##" in line):
        return [part for part in _RESTART.split(line) if part.strip()]
    return [line]


def without_done(line: str) -> tuple[str, bool]:
    """Return the line without a mark of the end after it, and whether there was one or the line is one."""
    match = _DONE_AT_END.search(line)
    if match:
        return line[: match.start()], True
    return ("", True) if _DONE_LINE.fullmatch(line) else (line, False)


def heading_kind(line: str) -> Kind | None:
    """Return the kind of the records that a line like "**Entities:**" stands above."""
    match = _HEADING.fullmatch(line)
    return _KIND_BY_WORD[match[1].casefold()] if match else None


def begins_record(line: str) -> bool:
    """Say whether the line begins with the word for a kind of record and a separator."""
    return _head(line) is not None


def split_fields(line: str) -> Fields | None:
    """Return the fields of a record, not cleaned; None where the line is none."""
    head = _head(line)
    if head is None:
        values = _split(_ANGLE, line) if _ANGLE.search(line) else _row(line)
        return Fields(None, values) if len(values) > 1 else None
    rest = line[head.end("close") :]
    values = _fields_after(rest, head["after"])
    return Fields(_KIND_BY_WORD[head["word"].casefold()], values) if values else None


def _head(line: str) -> re.Match[str] | None:
    """Return how a record begins; a key of JSON begins none."""
    head = _HEAD.match(line)
    is_key = head is not None and head["after"] in ":：" and head["close"].rstrip("*`)]")
    return None if is_key else head


def _fields_after(rest: str, after: str) -> tuple[str, ...]:
    rest = rest.lstrip(" :：-") if after in ":：-" else rest
    if _ANGLE.search(rest):
        values = _split(_ANGLE, rest)
        return values if len(values) > 2 else _split(_ANGLE_OR_BAR, rest)
    for separator in (_BAR, _TAB, _COLONS):
        if separator.search(rest):
            return _split(separator, rest)
    if after in ",(":
        found = _QUOTED.findall(rest.lstrip(",( ").rstrip(" ,)]}"))
        return tuple(value for value in map("".join, found) if value.strip())
    return ()


def _row(line: str) -> tuple[str, ...]:
    """Return the cells of a row of a Markdown table."""
    return _split(_BAR, line) if line.lstrip().startswith("|") else ()


def _split(separator: re.Pattern[str], text: str) -> tuple[str, ...]:
    values = [value.strip() for value in separator.split(text)]
    while values and not values[0].strip(_OUTER):
        del values[0]
    while values and not values[-1].strip(_OUTER + "()#"):
        del values[-1]
    return tuple(values)


def clean_text(value: str) -> str:
    """Return a field as one line, without the marks around it."""
    value = _unbracketed(value[: 2 * MAX_TEXT_CHARS].strip(_OUTER))
    while len(value) > 4 and value[:2] == value[-2:] and value[:2] in ("**", "__"):
        value = value[2:-2]
    text = _SPACE.sub(" ", value.strip(_OUTER))[:MAX_TEXT_CHARS]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def clean_name(value: str) -> str:
    """Return a name without the marks around it; "" where it is none: no letter, a placeholder, or too long."""
    name = clean_text(value).strip("*_").rstrip(",;:，；：").strip()
    if len(name) > MAX_NAME_CHARS or not any(char.isalnum() for char in name):
        return ""
    return "" if name[0] + name[-1] in ("<>", "{}", "[]") else name


def _unbracketed(value: str) -> str:
    """Take off what closes the record that the field ends: a parenthesis it does not open, a record mark."""
    value = _without_end(value)
    while value.endswith((")", "]")) and value.count(value[-1]) > value.count("(" if value[-1] == ")" else "["):
        value = _without_end(value[:-1])
    return value.strip(_OUTER)


def _without_end(value: str) -> str:
    value = value.rstrip(",; \t")
    return value.rstrip("#,; \t") if value.endswith("##") else value
