"""Records: the fields of one record of a reply as an entity, relation, alias or claim, in whatever order they came."""

import re
from collections.abc import Collection, Sequence

from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation
from quipu.text.record_fields import Fields, Kind, clean_name, clean_text

Record = ExtractedEntity | ExtractedRelation | ExtractedAlias | ExtractedClaim

DEFAULT_WEIGHT = 0.5
MAX_KEYWORDS = 8
MAX_KEYWORD_CHARS = 60
MAX_TYPE_CHARS = 40

_STRENGTH = re.compile(
    r"\W{0,4}(?:relationship_?)?(?:strength|weight|score|强度|權重|权重)?\W{0,4}?"
    r"(?P<number>\d{1,3}(?:[.,]\d{1,6})?)\s?(?P<unit>%|/ ?10|分)?\W{0,4}",
    re.IGNORECASE,
)
_STRENGTH_WORDS = {"strong": 0.9, "high": 0.9, "moderate": 0.5, "medium": 0.5, "weak": 0.2, "low": 0.2}
_KEYWORD_END = re.compile(r"[,，、;；/]")
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’)\]]?$")
_PLACEHOLDER_WORDS = """
name names type description source target subject object alias keyword keywords entity relation strength status dates
other_name name1 name2 entity1 entity2 entity_name entity_type entity_description source_entity target_entity
relationship_description relationship_keywords relationship_strength source_name target_name x y ... … 名称 类型 描述
"""
_PLACEHOLDERS = frozenset(_PLACEHOLDER_WORDS.split())
_NOTHING = frozenset(("", "-", "–", "—", "none", "null", "n/a", "na", "unknown", "无", "нет"))


def make_record(fields: Fields, types: Collection[str] = ()) -> Record | None:
    """Return what the fields say, None where a name is missing or the format is only repeated.

    `types` are the casefolded names of the types asked for: they tell a type from a name where the two changed places.
    Without a word for its kind, a record of three fields is an entity and one of four or five a relation.
    """
    values = fields.values
    kind = fields.kind or _guess(values)
    if kind is Kind.ENTITY and len(values) > 4 and strength_weight(values[-1]) is not None:
        kind = Kind.RELATION
    if kind is Kind.ENTITY:
        return entity_record(values, types)
    if kind is Kind.RELATION:
        return _relation(values)
    if kind is Kind.ALIAS:
        return alias_record(values)
    return claim_record(values) if kind is Kind.CLAIM else None


def entity_record(values: Sequence[str], types: Collection[str] = ()) -> ExtractedEntity | None:
    """Return an entity from name, type and description; the type may be missing or stand in another place."""
    rest = [clean_text(value) for value in values[1:]]
    name = clean_name(values[0]) if values else ""
    if rest and name.casefold() in types and rest[0].casefold() not in types:
        name, rest[0] = clean_name(rest[0]), name
    type_, description = _type_and_description(rest)
    if not name or (_is_placeholder(name) and (_is_placeholder(type_) or _is_placeholder(description))):
        return None
    return ExtractedEntity(name=name, type="" if _is_nothing(type_) else type_, description=description)


def relation_record(
    source: str, target: str, keywords: str, description: str, weight: float | None
) -> ExtractedRelation | None:
    """Return a relation from its two names and what is said of them; without a weight it has the middle one."""
    source, target = clean_name(source), clean_name(target)
    if not source or not target or (_is_placeholder(source) and _is_placeholder(target)):
        return None
    return ExtractedRelation(
        source=source,
        target=target,
        keywords=split_keywords(keywords),
        description=clean_text(description),
        weight=DEFAULT_WEIGHT if weight is None else weight,
    )


def alias_record(values: Sequence[str]) -> ExtractedAlias | None:
    """Return an alias from two names."""
    if len(values) < 2:
        return None
    name, alias = clean_name(values[0]), clean_name(values[1])
    is_real = name and alias and name != alias and not (_is_placeholder(name) and alias.casefold() == "other name")
    return ExtractedAlias(name=name, alias=alias) if is_real and not _is_placeholder(alias) else None


def claim_record(values: Sequence[str]) -> ExtractedClaim | None:
    """Return a claim from subject, object, type, status, dates and description; the first and the last must be said."""
    if len(values) < 4:
        return None
    subject, *between, description = map(clean_text, values)
    subject = clean_name(subject)
    object_, type_, status, dates = (["" if _is_nothing(text) else text for text in between] + [""] * 4)[:4]
    if not subject or not description or (_is_placeholder(subject) and _is_placeholder(description)):
        return None
    return ExtractedClaim(
        subject=subject,
        object=clean_name(object_),
        type=type_[:MAX_TYPE_CHARS],
        status=status.casefold()[:MAX_TYPE_CHARS],
        dates=dates[:MAX_KEYWORD_CHARS],
        description=description,
    )


def strength_weight(value: str) -> float | None:
    """Return the weight of a strength from 1 to 10, as a tenth of it; None where the field is no strength.

    A fraction below 1 is a weight already, a percentage a hundred times one; what is out of range is set to its end.
    """
    text = clean_text(value)
    if text.casefold() in _STRENGTH_WORDS:
        return _STRENGTH_WORDS[text.casefold()]
    match = _STRENGTH.fullmatch(text)
    if match is None:
        return None
    number = float(match["number"].replace(",", "."))
    if match["unit"] == "%":
        number /= 10
    elif number < 1:
        number *= 10
    return round(min(max(number, 1.0), 10.0) / 10, 3)


def split_keywords(text: str) -> tuple[str, ...]:
    """Return the keywords of a list, none twice."""
    words = (clean_text(word).strip("*_. ")[:MAX_KEYWORD_CHARS] for word in _KEYWORD_END.split(text))
    by_form = {word.casefold(): word for word in words if word and not _is_nothing(word)}
    return tuple(by_form.values())[:MAX_KEYWORDS]


def _guess(values: Sequence[str]) -> Kind | None:
    if len(values) == 3:
        return Kind.ENTITY
    return Kind.RELATION if len(values) in (4, 5) else None


def _relation(values: Sequence[str]) -> ExtractedRelation | None:
    if len(values) < 3:
        return None
    said = list(values[2:])
    weight = None
    for position in reversed(range(len(said))):
        weight = strength_weight(said[position])
        if weight is not None:
            del said[position]
            break
    keywords, description = _keywords_and_description([text for text in map(clean_text, said) if text])
    return relation_record(values[0], values[1], keywords, description, weight)


def _type_and_description(rest: Sequence[str]) -> tuple[str, str]:
    if not rest:
        return "", ""
    if len(rest) == 1:
        return (rest[0], "") if _is_type(rest[0]) else ("", rest[0])
    if not _is_type(rest[0]) and _is_type(rest[-1]):
        return rest[-1], " ".join(rest[:-1])
    if not _is_type(rest[0]):
        return "", " ".join(text for text in rest if text)
    return rest[0], " ".join(text for text in rest[1:] if text)


def _is_type(text: str) -> bool:
    return len(text) <= MAX_TYPE_CHARS and len(text.split()) <= 4 and not _SENTENCE_END.search(text)


def _keywords_and_description(said: Sequence[str]) -> tuple[str, str]:
    if not said:
        return "", ""
    if len(said) == 1:
        return (said[0], "") if _is_keywords(said[0]) else ("", said[0])
    first, *rest = said
    if len(rest) == 1 and not _is_keywords(first) and _is_keywords(rest[0]):
        return rest[0], first
    return first, " ".join(rest)


def _is_keywords(text: str) -> bool:
    """Say whether a text is a list of words rather than a sentence."""
    parts = _KEYWORD_END.split(text)
    return not _SENTENCE_END.search(text) and all(len(part.split()) <= 4 and len(part) <= 40 for part in parts)


def _is_placeholder(text: str) -> bool:
    return text.casefold().strip("<>{}[] ").replace(" ", "_") in _PLACEHOLDERS


def _is_nothing(text: str) -> bool:
    return text.casefold() in _NOTHING
