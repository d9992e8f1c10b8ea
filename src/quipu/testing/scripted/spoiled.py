"""Spoiled replies: the shapes in which models really give what was asked for otherwise."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quipu.prompts.extraction import DONE
from quipu.testing.scripted.fate import Lot
from quipu.testing.scripted.fault import SPOILED_RECORDS, FaultName
from quipu.testing.scripted.records import DELIMITER, Record

_WRONG_DELIMITERS = ("<|", "|>", "<||>", "<|#|>", "|", "\t", " <|> ", "<>", "<｜>")
_THOUGHT = (
    "Let me see what the text says.\nentity<|>A Draft<|>Concept<|>A name that I consider and drop.\nNow the reply."
)
_N_LOOPS = 400


def spoil(reply: str, lot: Lot) -> str:
    """Return the reply in the shape of the fault that struck; as it is where there is none or another."""
    name = lot.fault.name if lot.fault else None
    wrap = _WRAPPED.get(name) if name else None
    return wrap(reply) if wrap else reply


def write_records(records: Sequence[Record], lot: Lot) -> str:
    """Return records as lines and the last line, spoiled where a fault strikes records."""
    name = lot.fault.name if lot.fault and lot.fault.name in SPOILED_RECORDS else None
    if name is FaultName.JSON:
        return records_as_json(records)
    if name is FaultName.LOOP and records:
        records = [*records, *[records[-1]] * _N_LOOPS]
    if name is FaultName.SWAPPED:
        records = [_swapped(record) if place % 3 == 0 else record for place, record in enumerate(records)]
    if name is FaultName.MISSING:
        records = [_shortened(record) if place % 2 == 0 else record for place, record in enumerate(records)]
    delimiter = DELIMITER
    if name is FaultName.DELIMITERS:
        delimiter = _WRONG_DELIMITERS[int(lot.chance("delimiter") * len(_WRONG_DELIMITERS))]
    lines = [record.line(delimiter) for record in records]
    return "\n".join(lines if name in (FaultName.UNCLOSED, FaultName.LOOP) else [*lines, DONE])


def records_as_json(records: Sequence[Record]) -> str:
    """Return records as one JSON object: entities, relations and aliases."""
    named: dict[str, list[dict[str, str | int | list[str]]]] = {"entities": [], "relations": [], "aliases": []}
    for tag, fields in ((record.tag, record.fields) for record in records):
        if tag == "entity":
            named["entities"].append({"name": fields[0], "type": fields[1], "description": fields[2]})
        elif tag == "relation":
            named["relations"].append(
                {
                    "source": fields[0],
                    "target": fields[1],
                    "keywords": fields[2].split(", "),
                    "description": fields[3],
                    "strength": int(fields[4]),
                }
            )
        else:
            named["aliases"].append({"name": fields[0], "other": fields[1]})
    return json.dumps(named, ensure_ascii=False)


def _swapped(record: Record) -> Record:
    """Exchange the type and the name of an entity, the keywords and the description of a relation."""
    fields = list(record.fields)
    if record.tag == "entity":
        fields[0], fields[1] = fields[1], fields[0]
    elif record.tag == "relation":
        fields[2], fields[3] = fields[3], fields[2]
    return replace(record, fields=tuple(fields))


def _shortened(record: Record) -> Record:
    return replace(record, fields=record.fields[: {"entity": 2, "relation": 3}.get(record.tag, 2)])


def _chatter(reply: str) -> str:
    numbered = "\n".join(line if line == DONE else f"{n}. {line}" for n, line in enumerate(reply.splitlines(), 1))
    return f"Sure! Here is what I found in the text:\n\n{numbered}\n\nI hope this helps. Let me know if you need more!"


def _in_another_language(reply: str) -> str:
    """Open and close in Chinese, and give the descriptions in it."""
    said = re.sub(r"(?m)^(entity<\|>.*<\|>.*<\|>).*$", r"\1文中提到的名称。", reply)
    return f"好的，以下是结果：\n{said}\n以上就是全部内容。"


_WRAPPED: Mapping[FaultName, Callable[[str], str]] = {
    FaultName.THINKING: lambda reply: f"<think>\n{_THOUGHT}\n</think>\n\n{reply}",
    FaultName.THINKING_UNOPENED: lambda reply: f"{_THOUGHT}\n</think>\n\n{reply}",
    FaultName.THINKING_UNCLOSED: lambda reply: f"<think>\n{_THOUGHT}\n\n{reply}",
    FaultName.FENCES: lambda reply: f"```text\n{reply}\n```",
    FaultName.CHATTER: _chatter,
    FaultName.LANGUAGE: _in_another_language,
    FaultName.EMPTY: lambda _: "",
}
