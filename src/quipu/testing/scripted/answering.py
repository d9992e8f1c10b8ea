"""Answering: what a scripted model says to a prompt, as a function of the prompt and the script."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from quipu.model.ids import digest
from quipu.testing.scripted import community_answers
from quipu.testing.scripted.asked import Asked
from quipu.testing.scripted.fate import Lot
from quipu.testing.scripted.fault import FaultName
from quipu.testing.scripted.kind import EXTRACTIONS, Kind
from quipu.testing.scripted.recorded import RecordedExtractions
from quipu.testing.scripted.records import Record, find_records, names_in, read_records, sentences
from quipu.testing.scripted.schema import instance_of
from quipu.testing.scripted.script import Answering
from quipu.testing.scripted.spoiled import records_as_json, spoil, write_records

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_PRONOUN = re.compile(r"\b(he|she|it|they|him|them|his|her|its|their)\b", re.IGNORECASE)
_UNKNOWN_NUMBER = 97


class Answerer:
    """Answers prompts by the rules of a script; reads the file of recorded extractions once."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._recorded = RecordedExtractions(Path(answering.extraction)) if answering.extraction else None

    def answer(self, asked: Asked, lot: Lot, schema: str | None) -> str:
        """Return the reply; with a schema ("" for any) it is JSON."""
        own = self._own(asked)
        if own is not None:
            return spoil(own, lot)
        if asked.kind in EXTRACTIONS:
            records = self._extract(asked)
            is_json = schema is not None
            return spoil(records_as_json(records) if is_json else write_records(records, lot), lot)
        reply = _WRITERS.get(asked.kind, _echo)(asked, lot)
        is_free = schema is None or asked.kind in _ALWAYS_JSON
        return spoil(reply if is_free else instance_of(schema or "", reply), lot)

    def _own(self, asked: Asked) -> str | None:
        fits = (
            reply.text
            for reply in self._answering.replies
            if asked.kind in (reply.kinds or (asked.kind,)) and reply.containing in asked.whole
        )
        return next(fits, None)

    def _extract(self, asked: Asked) -> list[Record]:
        """Return the records of the text; later requests get those that have not been said yet."""
        records = self._recorded.find(asked.text) if self._recorded else None
        if records is None:
            records = find_records(asked.text, self._answering.max_entities)
        n_first = max(0, len(records) - self._answering.n_withheld)
        if asked.kind is Kind.EXTRACT:
            return records[:n_first]
        said = {record.key() for reply in asked.said for record in read_records(reply)}
        is_gleaning = asked.kind is Kind.GLEAN or len(asked.said) > 1  # also the rest of what was gleaned
        wanted = records if is_gleaning else records[:n_first]
        return [record for record in wanted if record.key() not in said]


def _write_keywords(asked: Asked, _lot: Lot) -> str:
    names = dict.fromkeys(names_in(asked.question))
    long = [word for word in _WORD.findall(asked.question) if len(word) > 4 and not word[0].isupper()]
    return json.dumps(
        {"high_level_keywords": list(dict.fromkeys(long))[:5], "low_level_keywords": list(names)[:8]},
        ensure_ascii=False,
    )


def _write_summary(asked: Asked, _lot: Lot) -> str:
    """Return the subjects, the first words of each note, and a mark of them all: another input, another summary."""
    lines = [line.strip() for line in asked.text.splitlines() if line.strip()]
    notes = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    subjects = " ".join(line.removeprefix("Subjects: ") for line in lines if not line.startswith("- "))
    parts = dict.fromkeys(" ".join(note.split()[:8]).rstrip(".") for note in notes)
    return f"{subjects}: {'; '.join(parts)[:600]}. (Summary {digest(asked.text)[:8]} of {len(notes)}.)"


def _write_report(asked: Asked, _lot: Lot) -> str:
    """Return a report that names the first notes, with a mark of them all: another input, another report."""
    notes = [line.removeprefix("- ") for line in asked.text.splitlines() if line.startswith("- ")]
    first = [" ".join(note.split()[:8]) for note in notes]
    findings = [{"summary": note, "explanation": f"One of {len(notes)} notes."} for note in first[1:4]]
    summary = f"{'; '.join(first)[:400]}. (Report {digest(asked.text)[:8]} on {len(notes)} notes.)"
    rating = int(digest(asked.text)[:4], 16) % 101 / 10
    report = {"title": "".join(first[:1]) or "Nothing", "summary": summary, "rating": rating, "findings": findings}
    return json.dumps(report, ensure_ascii=False)


def _write_aggregate(asked: Asked, _lot: Lot) -> str:
    """Return an aggregate called by the first things, with a mark of all: another input, another aggregate."""
    notes = [line.removeprefix("- ") for line in asked.text.splitlines() if line.startswith("- ")]
    names = [note.partition(":")[0] for note in notes]
    findings = [{"summary": note, "explanation": f"One of {len(notes)} notes."} for note in notes[:3]]
    mark = f"(Aggregate {digest(asked.text)[:8]} of {len(notes)} notes.)"
    said = {"name": " and ".join(names[:2]) or "Nothing", "description": f"{'; '.join(notes)[:400]}. {mark}"}
    return json.dumps({**said, "findings": findings}, ensure_ascii=False)


def _write_connection(asked: Asked, _lot: Lot) -> str:
    """Return the first notes in a line, with a mark of all."""
    notes = [line.removeprefix("- ") for line in asked.text.splitlines() if line.startswith("- ")]
    return f"{'; '.join(notes)[:200]}. (Connection {digest(asked.text)[:8]}.)"


def _write_answer(asked: Asked, lot: Lot) -> str:
    """Return the first sentence of each of the first two passages with its number."""
    passage = re.compile(
        rf"^{re.escape(asked.boundary)}\[(\d+)\][^\n]*\n(.*?)(?=^{re.escape(asked.boundary)}|\Z)", re.M | re.S
    )
    quoted = [
        f"{said[0]} [{match.group(1)}]" for match in passage.finditer(asked.text) if (said := sentences(match.group(2)))
    ][:2]
    name = lot.fault.name if lot.fault else None
    if name is FaultName.UNKNOWN_CITATION:
        quoted.append(f"Another source says the same. [{_UNKNOWN_NUMBER}]")
    if name is FaultName.UNSUPPORTED:
        quoted.append("Seventeen purple elephants signed the treaty of Samarkand. [1]")
    if not asked.boundary:
        return f"This is what I know of it: {asked.question[:80]}"
    return " ".join(quoted) or "[0] The evidence does not answer the question."


def _write_question(asked: Asked, _lot: Lot) -> str:
    """Return the question with the name last spoken of in the place of its first pronoun, or behind it, as JSON."""
    names = names_in(asked.history)
    rewritten = asked.question
    if names:
        replaced, n_replaced = _PRONOUN.subn(names[-1], asked.question, count=1)
        rewritten = replaced if n_replaced else f"{asked.question} ({names[-1]})"
    return json.dumps({"question": rewritten}, ensure_ascii=False)


def _write_guide(asked: Asked, _lot: Lot) -> str:
    """Return a guide to reading that is a function of the passages: known types, one of their own, what they name."""
    blocks = re.split(rf"^{re.escape(asked.boundary)}[^\n]*\n", asked.text, flags=re.MULTILINE)
    types, passages = blocks[1] if len(blocks) > 1 else "", "\n".join(blocks[2:])
    known = [line.partition(":")[0].strip() for line in types.splitlines() if line.strip()][:3]
    long = sorted({word.capitalize() for word in _WORD.findall(passages) if word.islower() and len(word) > 7})
    names = list(dict.fromkeys(names_in(passages)))[:3]
    guide = {
        "domain": f"The texts speak of {', '.join(names)}. What they did matters.",
        "types": [{"name": name, "description": f"told of {name}"} for name in (*known, *long[:1])],
        "relations": [{"name": "told of", "description": "spoken of by", "from": known[:1], "to": known[1:]}],
    }
    return json.dumps(guide, ensure_ascii=False)


def _write_judgement(asked: Asked, _lot: Lot) -> str:
    """Return a score from 0 to 1 that is a function of what is judged."""
    return json.dumps({"score": int(digest(asked.text)[:4], 16) % 101 / 100, "reason": "scripted"})


def _echo(asked: Asked, _lot: Lot) -> str:
    return f"You said: {' '.join(asked.question.split()[:12])}"


_WRITERS: Mapping[Kind, Callable[[Asked, Lot], str]] = {
    Kind.KEYWORDS: _write_keywords,
    Kind.SUMMARISE: _write_summary,
    Kind.REPORT: _write_report,
    Kind.AGGREGATE: _write_aggregate,
    Kind.CONNECT: _write_connection,
    Kind.ANSWER: _write_answer,
    Kind.REWRITE: _write_question,
    Kind.JUDGE: _write_judgement,
    Kind.TUNE: _write_guide,
    **community_answers.WRITERS,
}
_ALWAYS_JSON = frozenset(
    {Kind.KEYWORDS, Kind.REPORT, Kind.AGGREGATE, Kind.REWRITE, Kind.JUDGE, Kind.TUNE, *community_answers.WRITERS}
    - {Kind.IMAGINE}
)
