"""JSON records: a reply in JSON, under whatever keys, as entities, relations, aliases and claims."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from quipu.text.record_fields import Kind
from quipu.text.records import (
    Record,
    alias_record,
    claim_record,
    entity_record,
    relation_record,
    strength_weight,
)

MAX_DEPTH = 6

_LISTS = {
    Kind.ENTITY: ("entities", "entity", "nodes", "实体"),
    Kind.RELATION: ("relations", "relationships", "relation", "edges", "triples", "other_relationships", "关系"),
    Kind.ALIAS: ("aliases", "alias", "别名"),
    Kind.CLAIM: ("claims", "claim", "covariates", "声明"),
}
_KIND_BY_KEY = {key: kind for kind, keys in _LISTS.items() for key in keys}
_KIND_BY_WORD = {"relationship": Kind.RELATION, "edge": Kind.RELATION, "node": Kind.ENTITY} | _KIND_BY_KEY

_NAME = ("name", "entity_name", "entity", "title", "label", "id", "名称", "实体")
_TYPE = ("type", "entity_type", "category", "kind", "类型")
_DESCRIPTION = ("description", "desc", "entity_description", "relationship_description", "summary", "描述")
_SOURCE = ("source", "source_entity", "source_name", "src", "src_id", "from", "subject", "head", "entity1", "源")
_TARGET = ("target", "target_entity", "target_name", "tgt", "tgt_id", "to", "object", "tail", "entity2", "目标")
_KEYWORDS = ("keywords", "relationship_keywords", "relation", "predicate", "relationship", "label", "type", "关键词")
_STRENGTH = ("strength", "relationship_strength", "weight", "score", "强度")
_OTHER = ("other", "alias", "other_name", "aliases")


def json_records(value: object, types: Collection[str] = ()) -> list[Record]:
    """Return the records of a JSON value: lists under the usual keys, a list of records, or one of them.

    A JSON schema, which has an object where a list should be, holds none.
    """
    return [record for record in _records(value, None, types, 0) if record is not None]


def _records(value: object, kind: Kind | None, types: Collection[str], depth: int) -> Iterator[Record | None]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _item(item, kind, types, depth + 1)
    elif isinstance(value, dict):
        yield from _object(value, types, depth)


def _object(value: Mapping[str, object], types: Collection[str], depth: int) -> Iterator[Record | None]:
    lists = {key: _KIND_BY_KEY.get(key.casefold()) for key in value}
    if _kind(value) is not None:
        yield from _item(value, None, types, depth + 1)
        return
    for key, kind in lists.items():
        if kind or isinstance(value[key], dict):
            yield from _records(value[key], kind, types, depth + 1)


def _item(item: object, kind: Kind | None, types: Collection[str], depth: int) -> Iterator[Record | None]:
    if isinstance(item, dict):
        kind = kind or _kind(item)
        if kind is None:
            yield from _records(item, None, types, depth)
        else:
            yield _from_object(item, kind, types)
            if kind is Kind.ENTITY:
                name = _text(item, _NAME)
                yield from (alias_record((name, alias)) for alias in _strings(item.get("aliases")))
    elif isinstance(item, list):
        yield _from_list([_as_text(part) for part in item], kind, types)
    elif isinstance(item, str) and kind is Kind.ENTITY:
        yield entity_record((item,), types)


def _kind(item: Mapping[str, object]) -> Kind | None:
    """Return what an object in a list of mixed ones is, by what it says or by its keys."""
    for key in ("record", "record_type", "kind", "type"):
        said = _KIND_BY_WORD.get(_as_text(item.get(key)).casefold())
        if said:
            return said
    if _text(item, _SOURCE) and _text(item, _TARGET):
        return Kind.RELATION
    if _text(item, _NAME) and _field(item, ("other", "alias", "other_name")):
        return Kind.ALIAS
    return Kind.ENTITY if _text(item, _NAME) and _field(item, (*_TYPE, *_DESCRIPTION)) else None


def _from_object(item: Mapping[str, object], kind: Kind, types: Collection[str]) -> Record | None:
    if kind is Kind.RELATION:
        said = (_text(item, _KEYWORDS), _text(item, _DESCRIPTION))
        return relation_record(
            _text(item, _SOURCE), _text(item, _TARGET), *said, strength_weight(_text(item, _STRENGTH))
        )
    if kind is Kind.ALIAS:
        return alias_record((_text(item, _NAME), _text(item, _OTHER)))
    if kind is Kind.CLAIM:
        keys = ("subject", "object", "type", "status", "dates", "description")
        return claim_record([_as_text(item.get(key)) for key in keys])
    type_ = next((text for text in (_as_text(item.get(key)) for key in _TYPE) if text not in _KIND_BY_WORD), "")
    return entity_record((_text(item, _NAME), type_, _text(item, _DESCRIPTION)), types)


def _from_list(parts: Sequence[str], kind: Kind | None, types: Collection[str]) -> Record | None:
    """Return the record of a list: [kind, …], or [source, keywords, target] among relations."""
    said = _KIND_BY_WORD.get(parts[0].casefold()) if parts else None
    kind, parts = (said, parts[1:]) if said else (kind, parts)
    if kind is Kind.RELATION:
        if len(parts) == 3 and not said:
            parts = (parts[0], parts[2], parts[1])
        weight = strength_weight(parts[-1]) if len(parts) > 3 else None
        keywords, description, *_ = *parts[2 : len(parts) - (weight is not None)], "", ""
        return relation_record(parts[0], parts[1], keywords, description, weight) if len(parts) > 1 else None
    if kind is Kind.ALIAS:
        return alias_record(parts)
    return entity_record(parts, types) if kind is Kind.ENTITY else None


def _field(item: Mapping[str, object], keys: Sequence[str]) -> object:
    by_key = {key.casefold(): value for key, value in item.items()}
    return next((by_key[key] for key in keys if by_key.get(key) not in (None, "", [])), None)


def _text(item: Mapping[str, object], keys: Sequence[str]) -> str:
    return _as_text(_field(item, keys))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ", ".join(_strings(value))


def _strings(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value if isinstance(item, str | int | float)]
    return [value] if isinstance(value, str) else []
