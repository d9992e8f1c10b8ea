"""Extraction records: the fields or JSON of a model's reply as entities, relations, aliases and claims."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation
from quipu.text.record_lines import RecordKind, clean_name, clean_text

ExtractionRecord = ExtractedEntity | ExtractedRelation | ExtractedAlias | ExtractedClaim

DEFAULT_WEIGHT = 0.5
MAX_RECORD_KEYWORDS = 8
MAX_KEYWORD_CHARS = 60
MAX_TYPE_CHARS = 40
MAX_JSON_DEPTH = 6

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
_NONE_WORDS = frozenset(("", "-", "–", "—", "none", "null", "n/a", "na", "unknown", "无", "нет"))

_LIST_KEYS = {
    RecordKind.ENTITY: ("entities", "entity", "nodes", "实体"),
    RecordKind.RELATION: ("relations", "relationships", "relation", "edges", "triples", "other_relationships", "关系"),
    RecordKind.ALIAS: ("aliases", "alias", "别名"),
    RecordKind.CLAIM: ("claims", "claim", "covariates", "声明"),
}
_KIND_BY_KEY = {key: kind for kind, keys in _LIST_KEYS.items() for key in keys}
_KIND_BY_JSON_WORD = {
    "relationship": RecordKind.RELATION,
    "edge": RecordKind.RELATION,
    "node": RecordKind.ENTITY,
} | _KIND_BY_KEY

_NAME_KEYS = ("name", "entity_name", "entity", "title", "label", "id", "名称", "实体")
_TYPE_KEYS = ("type", "entity_type", "category", "kind", "类型")
_DESCRIPTION_KEYS = ("description", "desc", "entity_description", "relationship_description", "summary", "描述")
_SOURCE_KEYS = ("source", "source_entity", "source_name", "src", "src_id", "from", "subject", "head", "entity1", "源")
_TARGET_KEYS = ("target", "target_entity", "target_name", "tgt", "tgt_id", "to", "object", "tail", "entity2", "目标")
_KEYWORDS_KEYS = (
    "keywords",
    "relationship_keywords",
    "relation",
    "predicate",
    "relationship",
    "label",
    "type",
    "关键词",
)
_STRENGTH_KEYS = ("strength", "relationship_strength", "weight", "score", "强度")
_ALIAS_KEYS = ("other", "alias", "other_name", "aliases")


def make_record(kind: RecordKind | None, values: Sequence[str], types: Collection[str] = ()) -> ExtractionRecord | None:
    """Return the record that the fields state, None if a name is missing or the fields only repeat the format.

    The order of the fields may vary. `types` are the casefolded entity types that were asked for: they show that type
    and name are swapped. Without a kind, three fields make an entity, and four or five a relation.
    """
    if kind is None and 3 <= len(values) <= 5:
        kind = RecordKind.ENTITY if len(values) == 3 else RecordKind.RELATION
    if kind is RecordKind.ENTITY and len(values) > 4 and parse_strength(values[-1]) is not None:
        kind = RecordKind.RELATION
    if kind is RecordKind.ENTITY:
        return _entity_record(values, types)
    if kind is RecordKind.RELATION:
        return _relation_from_fields(values)
    if kind is RecordKind.ALIAS:
        return _alias_record(values)
    return _claim_record(values) if kind is RecordKind.CLAIM else None


def _entity_record(values: Sequence[str], types: Collection[str]) -> ExtractedEntity | None:
    """Return an entity from name, type and description; the type may be missing or stand elsewhere."""
    rest = [clean_text(value) for value in values[1:]]
    name = clean_name(values[0]) if values else ""
    if rest and name.casefold() in types and rest[0].casefold() not in types:
        name, rest[0] = clean_name(rest[0]), name
    type_, description = _split_type_and_description(rest)
    if not name or (_is_placeholder(name) and (_is_placeholder(type_) or _is_placeholder(description))):
        return None
    return ExtractedEntity(name=name, type="" if _means_none(type_) else type_, description=description)


def _split_type_and_description(fields: Sequence[str]) -> tuple[str, str]:
    if not fields:
        return "", ""
    if len(fields) == 1:
        return (fields[0], "") if _looks_like_type(fields[0]) else ("", fields[0])
    if _looks_like_type(fields[0]):
        return fields[0], " ".join(text for text in fields[1:] if text)
    if _looks_like_type(fields[-1]):
        return fields[-1], " ".join(fields[:-1])
    return "", " ".join(text for text in fields if text)


def _looks_like_type(text: str) -> bool:
    return len(text) <= MAX_TYPE_CHARS and len(text.split()) <= 4 and not _SENTENCE_END.search(text)


def _relation_from_fields(values: Sequence[str]) -> ExtractedRelation | None:
    """Return a relation from source, target, and then keywords, description and strength in any order."""
    if len(values) < 3:
        return None
    fields = list(values[2:])
    weight = None
    for position in reversed(range(len(fields))):
        weight = parse_strength(fields[position])
        if weight is not None:
            del fields[position]
            break
    keywords, description = _split_keywords_and_description([text for text in map(clean_text, fields) if text])
    return _relation_record(values[0], values[1], keywords, description, weight)


def _split_keywords_and_description(fields: Sequence[str]) -> tuple[str, str]:
    if not fields:
        return "", ""
    if len(fields) == 1:
        return (fields[0], "") if _looks_like_keywords(fields[0]) else ("", fields[0])
    first, *rest = fields
    if len(rest) == 1 and not _looks_like_keywords(first) and _looks_like_keywords(rest[0]):
        return rest[0], first
    return first, " ".join(rest)


def _looks_like_keywords(text: str) -> bool:
    """Return whether a text is a list of words and not a sentence."""
    parts = _KEYWORD_END.split(text)
    return not _SENTENCE_END.search(text) and all(len(part.split()) <= 4 and len(part) <= 40 for part in parts)


def _relation_record(
    source: str, target: str, keywords: str, description: str, weight: float | None
) -> ExtractedRelation | None:
    source, target = clean_name(source), clean_name(target)
    if not source or not target or (_is_placeholder(source) and _is_placeholder(target)):
        return None
    return ExtractedRelation(
        source=source,
        target=target,
        keywords=_split_keywords(keywords),
        description=clean_text(description),
        weight=DEFAULT_WEIGHT if weight is None else weight,
    )


def _split_keywords(text: str) -> tuple[str, ...]:
    """Return the distinct keywords of a list."""
    words = (clean_text(word).strip("*_. ")[:MAX_KEYWORD_CHARS] for word in _KEYWORD_END.split(text))
    by_form = {word.casefold(): word for word in words if word and not _means_none(word)}
    return tuple(by_form.values())[:MAX_RECORD_KEYWORDS]


def parse_strength(value: str) -> float | None:
    """Return the weight from 0.1 to 1 of a relation's strength, None if the field is not a strength.

    A strength from 1 to 10 is divided by ten. A fraction below 1 is a weight already, and a percentage is divided by a
    hundred. Values out of range are clipped.
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


def _alias_record(values: Sequence[str]) -> ExtractedAlias | None:
    """Return an alias from two names."""
    if len(values) < 2:
        return None
    name, alias = clean_name(values[0]), clean_name(values[1])
    is_real = name and alias and name != alias and not (_is_placeholder(name) and alias.casefold() == "other name")
    return ExtractedAlias(name=name, alias=alias) if is_real and not _is_placeholder(alias) else None


def _claim_record(values: Sequence[str]) -> ExtractedClaim | None:
    """Return a claim from subject, object, type, status, dates and description; the first and last are required."""
    if len(values) < 4:
        return None
    subject, *optional, description = map(clean_text, values)
    subject = clean_name(subject)
    object_, type_, status, dates = (["" if _means_none(text) else text for text in optional] + [""] * 4)[:4]
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


def _is_placeholder(text: str) -> bool:
    return text.casefold().strip("<>{}[] ").replace(" ", "_") in _PLACEHOLDERS


def _means_none(text: str) -> bool:
    return text.casefold() in _NONE_WORDS


def json_records(value: object, types: Collection[str] = ()) -> list[ExtractionRecord]:
    """Return the records of a JSON value: an object with lists under the usual keys, a list of records, or one record.

    A JSON schema has an object where a list is expected, so it gives no records.
    """
    return [record for record in _records_in(value, None, types, 0) if record is not None]


def _records_in(
    value: object, kind: RecordKind | None, types: Collection[str], depth: int
) -> Iterator[ExtractionRecord | None]:
    if depth > MAX_JSON_DEPTH:
        return
    if isinstance(value, list):
        for element in value:
            yield from _records_of_element(element, kind, types, depth + 1)
    elif isinstance(value, dict) and _kind_of_object(value) is not None:
        yield from _records_of_element(value, None, types, depth + 1)
    elif isinstance(value, dict):
        for key, child in value.items():
            child_kind = _KIND_BY_KEY.get(key.casefold())
            if child_kind or isinstance(child, dict):
                yield from _records_in(child, child_kind, types, depth + 1)


def _records_of_element(
    element: object, kind: RecordKind | None, types: Collection[str], depth: int
) -> Iterator[ExtractionRecord | None]:
    if isinstance(element, dict):
        kind = kind or _kind_of_object(element)
        if kind is None:
            yield from _records_in(element, None, types, depth)
        else:
            yield _record_from_object(element, kind, types)
            if kind is RecordKind.ENTITY:
                name = _text_at(element, _NAME_KEYS)
                yield from (_alias_record((name, alias)) for alias in _strings(element.get("aliases")))
    elif isinstance(element, list):
        yield _record_from_list([_as_text(part) for part in element], kind, types)
    elif isinstance(element, str) and kind is RecordKind.ENTITY:
        yield _entity_record((element,), types)


def _kind_of_object(members: Mapping[str, object]) -> RecordKind | None:
    """Return the kind of a JSON object, by a member that names it or else by its keys."""
    for key in ("record", "record_type", "kind", "type"):
        kind = _KIND_BY_JSON_WORD.get(_as_text(members.get(key)).casefold())
        if kind:
            return kind
    if _text_at(members, _SOURCE_KEYS) and _text_at(members, _TARGET_KEYS):
        return RecordKind.RELATION
    if _text_at(members, _NAME_KEYS) and _value_at(members, ("other", "alias", "other_name")):
        return RecordKind.ALIAS
    is_entity = _text_at(members, _NAME_KEYS) and _value_at(members, (*_TYPE_KEYS, *_DESCRIPTION_KEYS))
    return RecordKind.ENTITY if is_entity else None


def _record_from_object(
    members: Mapping[str, object], kind: RecordKind, types: Collection[str]
) -> ExtractionRecord | None:
    if kind is RecordKind.RELATION:
        return _relation_record(
            _text_at(members, _SOURCE_KEYS),
            _text_at(members, _TARGET_KEYS),
            _text_at(members, _KEYWORDS_KEYS),
            _text_at(members, _DESCRIPTION_KEYS),
            parse_strength(_text_at(members, _STRENGTH_KEYS)),
        )
    if kind is RecordKind.ALIAS:
        return _alias_record((_text_at(members, _NAME_KEYS), _text_at(members, _ALIAS_KEYS)))
    if kind is RecordKind.CLAIM:
        keys = ("subject", "object", "type", "status", "dates", "description")
        return _claim_record([_as_text(members.get(key)) for key in keys])
    type_names = (_as_text(members.get(key)) for key in _TYPE_KEYS)
    type_ = next((name for name in type_names if name not in _KIND_BY_JSON_WORD), "")
    return _entity_record((_text_at(members, _NAME_KEYS), type_, _text_at(members, _DESCRIPTION_KEYS)), types)


def _record_from_list(parts: Sequence[str], kind: RecordKind | None, types: Collection[str]) -> ExtractionRecord | None:
    """Return the record of a list: [kind, …], or [source, keywords, target] among relations."""
    stated_kind = _KIND_BY_JSON_WORD.get(parts[0].casefold()) if parts else None
    kind, parts = (stated_kind, parts[1:]) if stated_kind else (kind, parts)
    if kind is RecordKind.RELATION:
        if len(parts) == 3 and not stated_kind:
            parts = (parts[0], parts[2], parts[1])
        weight = parse_strength(parts[-1]) if len(parts) > 3 else None
        keywords, description, *_ = *parts[2 : len(parts) - (weight is not None)], "", ""
        return _relation_record(parts[0], parts[1], keywords, description, weight) if len(parts) > 1 else None
    if kind is RecordKind.ALIAS:
        return _alias_record(parts)
    return _entity_record(parts, types) if kind is RecordKind.ENTITY else None


def _value_at(members: Mapping[str, object], keys: Sequence[str]) -> object:
    """Return the first value under one of `keys` that is not empty, None if there is none."""
    by_key = {key.casefold(): value for key, value in members.items()}
    return next((by_key[key] for key in keys if by_key.get(key) not in (None, "", [])), None)


def _text_at(members: Mapping[str, object], keys: Sequence[str]) -> str:
    return _as_text(_value_at(members, keys))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ", ".join(_strings(value))


def _strings(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(element) for element in value if isinstance(element, str | int | float)]
    return [value] if isinstance(value, str) else []
