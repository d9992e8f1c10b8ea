"""Records as a model would have written them: its earlier replies in a prompt, without what was around them."""

import json
from collections.abc import Iterable

from quipu.model.extraction import FoundAlias, FoundClaim, FoundEntity, FoundRelation
from quipu.prompts.extract import DONE, Format
from quipu.prompts.fence import disarmed

Found = FoundEntity | FoundRelation | FoundAlias | FoundClaim


def reply_text(records: Iterable[Found], format_: Format = "lines", *, is_done: bool = True) -> str:
    """Return records in the form asked for; `is_done` adds the last line."""
    if format_ == "json":
        return disarmed(_json_of(records))
    lines = disarmed("\n".join("<|>".join(_fields(record)) for record in records))
    return f"{lines}\n{DONE}".lstrip() if is_done else lines


def _fields(record: Found) -> tuple[str, ...]:
    match record:
        case FoundEntity():
            return "entity", record.name, record.type, record.description
        case FoundRelation():
            keywords = ", ".join(record.keywords)
            return "relation", record.source, record.target, keywords, record.description, _strength(record)
        case FoundAlias():
            return "alias", record.name, record.alias
        case FoundClaim():
            between = (text or "-" for text in (record.object, record.type, record.status, record.dates))
            return "claim", record.subject, *between, record.description


def _json_of(records: Iterable[Found]) -> str:
    lists: dict[str, list[dict[str, object]]] = {"entities": [], "relations": [], "aliases": []}
    for record in records:
        match record:
            case FoundEntity():
                name = "entities"
                said: dict[str, object] = {
                    "name": record.name,
                    "type": record.type,
                    "description": record.description,
                }
            case FoundRelation():
                name = "relations"
                said = {
                    "source": record.source,
                    "target": record.target,
                    "keywords": list(record.keywords),
                    "description": record.description,
                    "strength": float(_strength(record)),
                }
            case FoundAlias():
                name, said = "aliases", {"name": record.name, "other": record.alias}
            case FoundClaim():
                name = "claims"
                said = {key: getattr(record, key) for key in FoundClaim.__dataclass_fields__}
        lists.setdefault(name, []).append(said)
    return json.dumps(lists, ensure_ascii=False)


def _strength(relation: FoundRelation) -> str:
    return f"{round(relation.weight * 10, 2):g}"
