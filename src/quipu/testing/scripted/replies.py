"""Replies: what a scripted model answers, as a function of the prompt and the script."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from quipu.model.ids import digest
from quipu.prompts.judge import CRITERIA
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.prompt_parsing import IMAGE, ParsedPrompt
from quipu.testing.scripted.records import (
    ExtractionRecord,
    RecordedExtractions,
    find_names,
    find_records,
    read_records,
    sentences,
)
from quipu.testing.scripted.reply_shapes import build_instance, distort_reply, records_to_json, write_records
from quipu.testing.scripted.script import EXTRACTIONS, FaultName, ReplyRules, RequestKind
from quipu.text.questions import answer_entity_types
from quipu.text.words import content_terms, split_words

_MAX_FOLLOW_UPS = 5


@dataclass(frozen=True, slots=True)
class _NumberedBlock:
    """A numbered text of a prompt; `score` (0 to 100) is the percentage of the question's words in it."""

    number: int
    title: str
    text: str
    score: int


def _write_points(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the first sentence of each report, scored by the percentage of the question's words in it."""
    points = [
        {"text": _first(block.text), "score": block.score, "reports": [block.number]} for block in _blocks(prompt)
    ]
    return _json({"points": points})


def _write_rating(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return 0 if the report contains no word of the question, up to 5 if it contains all."""
    return _json({"rating": max((-(-block.score // 20) for block in _blocks(prompt)), default=0)})


def _write_imagined(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return a report on the question with the title of the example report."""
    title = next((block.title for block in _blocks(prompt)), "")
    return f"{title}\n\n{prompt.question}"


def _write_partial(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the first sentence of the best matching text, and a follow-up question for each name in the texts."""
    blocks = _blocks(prompt)
    best = max(blocks, key=lambda block: (block.score, -block.number), default=None)
    names = dict.fromkeys(name for block in blocks for name in find_names(block.text))
    return _json(
        {
            "answer": _first(best.text) if best else "",
            "score": best.score if best else 0,
            "sources": [best.number] if best else [],
            "follow_ups": [f"What is known of {name}?" for name in names][:_MAX_FOLLOW_UPS],
        }
    )


def _write_facts(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the numbers of the facts with a word of the question, those with most words first."""
    ranked = sorted((-block.score, block.number) for block in _blocks(prompt) if block.score)
    return _json({"relevant": [number for _, number in ranked]})


def _write_terms(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the names in the question, and the listed types that its words indicate."""
    listed = re.search(rf"^{re.escape(prompt.boundary)}Types\n(.*)$", prompt.text, re.MULTILINE)
    types = listed[1].split(", ") if listed else []
    names = list(dict.fromkeys(find_names(prompt.question)))
    return _json({"answer_types": list(answer_entity_types(prompt.question, types)), "names": names})


def _blocks(prompt: ParsedPrompt) -> list[_NumberedBlock]:
    mark = re.escape(prompt.boundary)
    block = re.compile(rf"^{mark}\[(\d+)\] ?([^\n]*)\n(.*?)(?=^{mark}|\Z)", re.MULTILINE | re.DOTALL)
    question_terms = frozenset(content_terms(split_words(prompt.question)))
    return [
        _NumberedBlock(int(match[1]), match[2], match[3].strip(), _share(question_terms, f"{match[2]}\n{match[3]}"))
        for match in block.finditer(prompt.text)
    ]


def _share(question_terms: frozenset[str], text: str) -> int:
    return (
        round(100 * len(question_terms & set(content_terms(split_words(text)))) / len(question_terms))
        if question_terms
        else 0
    )


def _first(text: str) -> str:
    return next(iter(sentences(text)), text).strip()


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False)


_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_PRONOUN = re.compile(r"\b(he|she|it|they|him|them|his|her|its|their)\b", re.IGNORECASE)
_UNKNOWN_NUMBER = 97


class ScriptedReplyWriter:
    """Writes the replies of a script; reads the file of recorded extractions once."""

    def __init__(self, answering: ReplyRules) -> None:
        self._answering = answering
        self._recorded = RecordedExtractions(Path(answering.extraction)) if answering.extraction else None

    def answer(self, prompt: ParsedPrompt, draw: RequestDraw, schema: str | None) -> str:
        """Return the reply; with a schema ("" for any) it is JSON."""
        canned = self._canned_reply(prompt)
        if canned is not None:
            return distort_reply(canned, draw)
        if prompt.kind in EXTRACTIONS:
            records = self._extract(prompt)
            is_json = schema is not None
            return distort_reply(records_to_json(records) if is_json else write_records(records, draw), draw)
        reply = _WRITERS.get(prompt.kind, _echo)(prompt, draw)
        is_free = schema is None or prompt.kind in _ALWAYS_JSON
        return distort_reply(reply if is_free else build_instance(schema or "", reply), draw)

    def _canned_reply(self, prompt: ParsedPrompt) -> str | None:
        texts = (
            reply.text
            for reply in self._answering.replies
            if prompt.kind in (reply.kinds or (prompt.kind,)) and reply.containing in prompt.full_text
        )
        return next(texts, None)

    def _extract(self, prompt: ParsedPrompt) -> list[ExtractionRecord]:
        """Return the records of the text; a later request gets the records that are not in earlier replies."""
        records = self._recorded.find(prompt.text) if self._recorded else None
        if records is None:
            records = find_records(prompt.text, self._answering.max_entities)
        n_first = max(0, len(records) - self._answering.n_withheld)
        if prompt.kind is RequestKind.EXTRACT:
            return records[:n_first]
        earlier_keys = {record.key() for reply in prompt.earlier_replies for record in read_records(reply)}
        is_gleaning = (
            prompt.kind is RequestKind.GLEAN or len(prompt.earlier_replies) > 1
        )  # also the rest of what was gleaned
        candidates = records if is_gleaning else records[:n_first]
        return [record for record in candidates if record.key() not in earlier_keys]


def _write_keywords(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    names = dict.fromkeys(find_names(prompt.question))
    long = [word for word in _WORD.findall(prompt.question) if len(word) > 4 and not word[0].isupper()]
    return json.dumps(
        {"high_level_keywords": list(dict.fromkeys(long))[:5], "low_level_keywords": list(names)[:8]},
        ensure_ascii=False,
    )


def _write_description(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return what the picture shows."""
    return prompt.full_text.rpartition(IMAGE)[2] or "I see no picture."


def _write_summary(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the subjects, the first words of each note, and a hash of the input, so each input has its own summary."""
    lines = [line.strip() for line in prompt.text.splitlines() if line.strip()]
    notes = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    subjects = " ".join(line.removeprefix("Subjects: ") for line in lines if not line.startswith("- "))
    parts = dict.fromkeys(" ".join(note.split()[:8]).rstrip(".") for note in notes)
    return f"{subjects}: {'; '.join(parts)[:600]}. (Summary {digest(prompt.text)[:8]} of {len(notes)}.)"


def _write_report(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return a report of the first notes with a hash of the input, so each input has its own report."""
    notes = [line.removeprefix("- ") for line in prompt.text.splitlines() if line.startswith("- ")]
    first = [" ".join(note.split()[:8]) for note in notes]
    findings = [{"summary": note, "explanation": f"One of {len(notes)} notes."} for note in first[1:4]]
    summary = f"{'; '.join(first)[:400]}. (Report {digest(prompt.text)[:8]} on {len(notes)} notes.)"
    rating = int(digest(prompt.text)[:4], 16) % 101 / 10
    report = {"title": "".join(first[:1]) or "Nothing", "summary": summary, "rating": rating, "findings": findings}
    return json.dumps(report, ensure_ascii=False)


def _write_aggregate(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return an aggregate named after the first entities, with a hash of the input."""
    notes = [line.removeprefix("- ") for line in prompt.text.splitlines() if line.startswith("- ")]
    names = [note.partition(":")[0] for note in notes]
    findings = [{"summary": note, "explanation": f"One of {len(notes)} notes."} for note in notes[:3]]
    mark = f"(Aggregate {digest(prompt.text)[:8]} of {len(notes)} notes.)"
    aggregate = {"name": " and ".join(names[:2]) or "Nothing", "description": f"{'; '.join(notes)[:400]}. {mark}"}
    return json.dumps({**aggregate, "findings": findings}, ensure_ascii=False)


def _write_connection(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the first notes in one line, with a hash of the input."""
    notes = [line.removeprefix("- ") for line in prompt.text.splitlines() if line.startswith("- ")]
    return f"{'; '.join(notes)[:200]}. (Connection {digest(prompt.text)[:8]}.)"


def _write_answer(prompt: ParsedPrompt, draw: RequestDraw) -> str:
    """Return the first sentence of each of the first two passages, with its citation."""
    passage = re.compile(
        rf"^{re.escape(prompt.boundary)}\[(\d+)\][^\n]*\n(.*?)(?=^{re.escape(prompt.boundary)}|\Z)", re.M | re.S
    )
    quoted = [
        f"{passage_sentences[0]} [{match.group(1)}]"
        for match in passage.finditer(prompt.text)
        if (passage_sentences := sentences(match.group(2)))
    ][:2]
    name = draw.fault.name if draw.fault else None
    if name is FaultName.UNKNOWN_CITATION:
        quoted.append(f"Another source says the same. [{_UNKNOWN_NUMBER}]")
    if name is FaultName.UNSUPPORTED:
        quoted.append("Seventeen purple elephants signed the treaty of Samarkand. [1]")
    if not prompt.boundary:
        return f"This is what I know of it: {prompt.question[:80]}"
    return " ".join(quoted) or "[0] The evidence does not answer the question."


def _write_question(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return the question with the last name of the history in place of its first pronoun, or after it, as JSON."""
    names = find_names(prompt.history)
    rewritten = prompt.question
    if names:
        replaced, n_replaced = _PRONOUN.subn(names[-1], prompt.question, count=1)
        rewritten = replaced if n_replaced else f"{prompt.question} ({names[-1]})"
    return json.dumps({"question": rewritten}, ensure_ascii=False)


def _write_guide(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return a reading guide that is a function of the passages: some listed types, a new one, and names."""
    blocks = re.split(rf"^{re.escape(prompt.boundary)}[^\n]*\n", prompt.text, flags=re.MULTILINE)
    types, passages = blocks[1] if len(blocks) > 1 else "", "\n".join(blocks[2:])
    first_types = [line.partition(":")[0].strip() for line in types.splitlines() if line.strip()][:3]
    long = sorted({word.capitalize() for word in _WORD.findall(passages) if word.islower() and len(word) > 7})
    names = list(dict.fromkeys(find_names(passages)))[:3]
    guide = {
        "domain": f"The texts speak of {', '.join(names)}. What they did matters.",
        "types": [{"name": name, "description": f"told of {name}"} for name in (*first_types, *long[:1])],
        "relations": [
            {"name": "told of", "description": "spoken of by", "from": first_types[:1], "to": first_types[1:]}
        ],
    }
    return json.dumps(guide, ensure_ascii=False)


def _write_judgement(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    """Return a reply to every judgement, which is a function of the judged text."""
    numbers = dict.fromkeys(CRITERIA, int(digest(prompt.text)[:4], 16) % 3)
    statements = [{"statement": line, "supported": True} for line in prompt.text.splitlines()[-1:]]
    last = " ".join(prompt.text.split()[-3:])
    written = {"question": f"Of whom or what is it said that: {last}?", "answer": last}
    return json.dumps({"statements": statements, "questions": [prompt.question], "useful": [1], **numbers, **written})


def _echo(prompt: ParsedPrompt, _draw: RequestDraw) -> str:
    return f"You said: {' '.join(prompt.question.split()[:12])}"


_WRITERS: Mapping[RequestKind, Callable[[ParsedPrompt, RequestDraw], str]] = {
    RequestKind.KEYWORDS: _write_keywords,
    RequestKind.PICTURE: _write_description,
    RequestKind.PAGE: _write_description,
    RequestKind.SUMMARISE: _write_summary,
    RequestKind.REPORT: _write_report,
    RequestKind.AGGREGATE: _write_aggregate,
    RequestKind.CONNECT: _write_connection,
    RequestKind.ANSWER: _write_answer,
    RequestKind.REWRITE: _write_question,
    RequestKind.JUDGE: _write_judgement,
    RequestKind.TUNE: _write_guide,
    RequestKind.POINTS: _write_points,
    RequestKind.RATE: _write_rating,
    RequestKind.IMAGINE: _write_imagined,
    RequestKind.PRIMER: _write_partial,
    RequestKind.FOLLOW_UP: _write_partial,
    RequestKind.FACTS: _write_facts,
    RequestKind.TERMS: _write_terms,
}
_ALWAYS_JSON = frozenset(
    {
        RequestKind.KEYWORDS,
        RequestKind.REPORT,
        RequestKind.AGGREGATE,
        RequestKind.REWRITE,
        RequestKind.JUDGE,
        RequestKind.TUNE,
        RequestKind.POINTS,
        RequestKind.RATE,
        RequestKind.PRIMER,
        RequestKind.FOLLOW_UP,
        RequestKind.FACTS,
        RequestKind.TERMS,
    }
)
