"""Reply shapes: malformed replies as real models give them, and the smallest value that fits a JSON schema."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quipu.prompts.extraction import DONE
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.records import DELIMITER, ExtractionRecord
from quipu.testing.scripted.script import SPOILED_RECORDS, FaultName

_WRONG_DELIMITERS = ("<|", "|>", "<||>", "<|#|>", "|", "\t", " <|> ", "<>", "<｜>")
_THOUGHT = (
    "Let me see what the text says.\nentity<|>A Draft<|>Concept<|>A name that I consider and drop.\nNow the reply."
)
_N_LOOPS = 400


def distort_reply(reply: str, draw: RequestDraw) -> str:
    """Return the reply changed by the injected fault, or unchanged if the fault does not concern its shape."""
    name = draw.fault.name if draw.fault else None
    wrap = _REWRITERS.get(name) if name else None
    return wrap(reply) if wrap else reply


def write_records(records: Sequence[ExtractionRecord], draw: RequestDraw) -> str:
    """Return the records as lines with the closing line, changed by the injected fault if it concerns records."""
    name = draw.fault.name if draw.fault and draw.fault.name in SPOILED_RECORDS else None
    if name is FaultName.JSON:
        return records_to_json(records)
    if name is FaultName.LOOP and records:
        records = [*records, *[records[-1]] * _N_LOOPS]
    if name is FaultName.SWAPPED:
        records = [_swapped(record) if index % 3 == 0 else record for index, record in enumerate(records)]
    if name is FaultName.MISSING:
        records = [_shortened(record) if index % 2 == 0 else record for index, record in enumerate(records)]
    delimiter = DELIMITER
    if name is FaultName.DELIMITERS:
        delimiter = _WRONG_DELIMITERS[int(draw.chance("delimiter") * len(_WRONG_DELIMITERS))]
    lines = [record.line(delimiter) for record in records]
    return "\n".join(lines if name in (FaultName.UNCLOSED, FaultName.LOOP) else [*lines, DONE])


def records_to_json(records: Sequence[ExtractionRecord]) -> str:
    """Return the records as one JSON object with entities, relations and aliases."""
    lists: dict[str, list[dict[str, str | int | list[str]]]] = {"entities": [], "relations": [], "aliases": []}
    for tag, fields in ((record.tag, record.fields) for record in records):
        if tag == "entity":
            lists["entities"].append({"name": fields[0], "type": fields[1], "description": fields[2]})
        elif tag == "relation":
            lists["relations"].append(
                {
                    "source": fields[0],
                    "target": fields[1],
                    "keywords": fields[2].split(", "),
                    "description": fields[3],
                    "strength": int(fields[4]),
                }
            )
        else:
            lists["aliases"].append({"name": fields[0], "other": fields[1]})
    return json.dumps(lists, ensure_ascii=False)


def _swapped(record: ExtractionRecord) -> ExtractionRecord:
    """Exchange type and name of an entity, or keywords and description of a relation."""
    fields = list(record.fields)
    if record.tag == "entity":
        fields[0], fields[1] = fields[1], fields[0]
    elif record.tag == "relation":
        fields[2], fields[3] = fields[3], fields[2]
    return replace(record, fields=tuple(fields))


def _shortened(record: ExtractionRecord) -> ExtractionRecord:
    return replace(record, fields=record.fields[: {"entity": 2, "relation": 3}.get(record.tag, 2)])


def _chatter(reply: str) -> str:
    numbered = "\n".join(line if line == DONE else f"{n}. {line}" for n, line in enumerate(reply.splitlines(), 1))
    return f"Sure! Here is what I found in the text:\n\n{numbered}\n\nI hope this helps. Let me know if you need more!"


def _in_another_language(reply: str) -> str:
    """Add Chinese sentences before and after, and replace the descriptions by Chinese ones."""
    translated = re.sub(r"(?m)^(entity<\|>.*<\|>.*<\|>).*$", r"\1文中提到的名称。", reply)
    return f"好的，以下是结果：\n{translated}\n以上就是全部内容。"


_REWRITERS: Mapping[FaultName, Callable[[str], str]] = {
    FaultName.THINKING: lambda reply: f"<think>\n{_THOUGHT}\n</think>\n\n{reply}",
    FaultName.THINKING_UNOPENED: lambda reply: f"{_THOUGHT}\n</think>\n\n{reply}",
    FaultName.THINKING_UNCLOSED: lambda reply: f"<think>\n{_THOUGHT}\n\n{reply}",
    FaultName.FENCES: lambda reply: f"```text\n{reply}\n```",
    FaultName.CHATTER: _chatter,
    FaultName.LANGUAGE: _in_another_language,
    FaultName.EMPTY: lambda _: "",
}


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_BY_TYPE: Mapping[str, Json] = {"integer": 1, "number": 1, "boolean": True, "null": None}


def build_instance(schema: str, text: str) -> str:
    """Return JSON that fits a schema of objects, arrays, enumerations and plain types; strings are `text`.

    Without a schema the result is an object with the text.
    """
    return json.dumps(_instance(json.loads(schema), text) if schema else {"text": text}, ensure_ascii=False)


def _instance(schema: Json, text: str) -> Json:
    if not isinstance(schema, dict):
        return None
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else "null"
    properties = schema.get("properties")
    if kind == "object" or isinstance(properties, dict):
        return (
            {name: _instance(part, text) for name, part in properties.items()} if isinstance(properties, dict) else {}
        )
    if kind == "array":
        return [_instance(schema.get("items"), text)]
    if kind == "string":
        return text
    return _BY_TYPE.get(kind) if isinstance(kind, str) else None
