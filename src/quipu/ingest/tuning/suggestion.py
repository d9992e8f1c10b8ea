"""Suggestion: a model reads a sample and suggests a domain, entity types and relations; its reply is checked."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quipu.errors import Refused, TooLong
from quipu.ingest.tuning.sample import TuningContext
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.extraction import RelationRule, TypeRule
from quipu.model.graph import OTHER_TYPE, Chunk
from quipu.ports.providers import LLM, Tokenizer
from quipu.prompts import tuning as prompt
from quipu.prompts.extraction import type_gloss
from quipu.prompts.instructions import escape_control_tokens
from quipu.text.model_text import parse_lenient_json
from quipu.text.sentences import sentence_spans

SAMPLE_TOKENS = (6_000, 3_000, 1_500, 750)  # of all excerpts; less if they exceed the model's context window
ATTEMPTS = 2
MAX_NOTES = 8  # about parts of the suggestion that are left out
MIN_TYPES = 2  # fewer are no guide
MAX_SENTENCES, MAX_DOMAIN = 3, 600  # of the domain: sentences, characters
MAX_NAME, MAX_DESCRIPTION = 40, 160  # characters

_NAME = re.compile(r"[^\W\d_][\w '’/&-]*")


@dataclass(slots=True)
class OntologySuggestion:
    """What a model suggests; `notes` say which parts of its reply were left out."""

    domain: str = ""
    types: list[TypeRule] = field(default_factory=list)
    relations: list[RelationRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def suggest_ontology(
    llm: LLM, chunks: Sequence[Chunk], context: TuningContext
) -> tuple[OntologySuggestion | None, list[str]]:
    """Return the model's suggestion, None if its replies are unusable, and notes for the user.

    Raises the errors of the model's calls, except Refused and TooLong.
    """
    try:
        suggestion = await _suggestion(llm, chunks, context)
    except (Refused, TooLong) as error:
        return None, [f"The model made no suggestion, so rules counted the names: {error}"]
    if suggestion is None:
        return None, ["The model's replies contained no suggestion, so rules counted the names."]
    notes = suggestion.notes[:MAX_NOTES]
    if len(suggestion.notes) > MAX_NOTES:
        notes.append(f"… and {len(suggestion.notes) - MAX_NOTES:,} more were left out.")
    return suggestion, notes


def suggestion_request(
    chunks: Sequence[Chunk], context: TuningContext, max_tokens: int, attempt: int = 0
) -> ChatRequest:
    """Return the request to the model: the beginnings of the chunks, together at most `max_tokens` tokens."""
    options = context.options
    types = [f"{rule.name}: {gloss}" if (gloss := type_gloss(rule)) else rule.name for rule in options.types]
    documents = tuple(sorted({chunk.document_id for chunk in chunks} & context.indexed))
    samples = excerpts(chunks, max_tokens, context.ingest_config.tokenizer)
    return ChatRequest(
        messages=prompt.render(samples, types, language=options.language, texts=options.prompts),
        role=Role.EXTRACT,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.SCHEMA,
        attempt=attempt,
        documents=documents,
        lifetime=ReplyLifetime.ALL_DOCUMENTS if documents else ReplyLifetime.DOCUMENTS,
    )


def excerpts(chunks: Sequence[Chunk], max_tokens: int, tokenizer: Tokenizer) -> list[prompt.SampleText]:
    """Return the beginning of each chunk, up to the end of a sentence; all have at most `max_tokens` tokens."""
    max_each = max_tokens // max(len(chunks), 1)
    return [
        prompt.SampleText(text=_beginning(chunk.text, max_each, tokenizer), title=chunk.title, headings=chunk.headings)
        for chunk in chunks
    ]


def parse_suggestion(reply: str, current_types: Sequence[TypeRule]) -> OntologySuggestion | None:
    """Return the suggestion in a reply, None if it is unusable; a type that exists now keeps its spelling."""
    fields = parse_lenient_json(reply)
    if not isinstance(fields, dict):
        return None
    suggestion = OntologySuggestion(domain=_domain(fields.get("domain")))
    spelling_by_form = {_form(rule.name): rule.name for rule in current_types}
    for type_fields in _objects(fields.get("types")):
        _add_type(type_fields, spelling_by_form, suggestion)
    if len(suggestion.types) < MIN_TYPES:
        return None
    spelling_by_form = {_form(rule.name): rule.name for rule in suggestion.types}
    for relation_fields in _objects(fields.get("relations")):
        _add_relation(relation_fields, spelling_by_form, suggestion)
    return suggestion


async def _suggestion(llm: LLM, chunks: Sequence[Chunk], context: TuningContext) -> OntologySuggestion | None:
    sizes = iter(SAMPLE_TOKENS)
    size = next(sizes)
    for attempt in range(ATTEMPTS):
        while True:
            try:
                completion = await llm.complete(suggestion_request(chunks, context, size, attempt))
                break
            except TooLong:
                smaller = next(sizes, None)
                if smaller is None:
                    raise
                size = smaller
        if suggestion := parse_suggestion(completion.text, context.options.types):
            return suggestion
    return None


def _beginning(text: str, max_tokens: int, tokenizer: Tokenizer) -> str:
    if tokenizer.count(text) <= max_tokens:
        return text
    last_end = 0
    for _, end in sentence_spans(text):
        if tokenizer.count(text[:end]) > max_tokens:
            break
        last_end = end
    return text[:last_end] or text[: max(1, max_tokens * len(text) // tokenizer.count(text))]


def _add_type(
    fields: Mapping[str, object], spelling_by_form: Mapping[str, str], suggestion: OntologySuggestion
) -> None:
    stated_name = _line(fields.get("name"))
    name = spelling_by_form.get(_form(stated_name), stated_name)
    if name == OTHER_TYPE:  # always exists
        return
    names = (rule.name for rule in suggestion.types)
    problem = _name_problem(name, names, is_full=len(suggestion.types) >= prompt.MAX_TYPES)
    if problem:
        suggestion.notes.append(f"The type {stated_name[:MAX_NAME]!r} was left out: {problem}.")
        return
    suggestion.types.append(TypeRule(name=name, description=_line(fields.get("description"))[:MAX_DESCRIPTION]))


def _add_relation(
    fields: Mapping[str, object], spelling_by_form: Mapping[str, str], suggestion: OntologySuggestion
) -> None:
    name = _line(fields.get("name"))
    names = (rule.name for rule in suggestion.relations)
    problem = _name_problem(name, names, is_full=len(suggestion.relations) >= prompt.MAX_RELATIONS)
    ends: list[tuple[str, ...]] = []
    for end in ("from", "to"):
        stated_types = _lines(fields.get(end))
        spellings = (spelling_by_form.get(_form(stated_type)) for stated_type in stated_types)
        types = tuple(dict.fromkeys(spelling for spelling in spellings if spelling is not None))
        if stated_types and not types:
            problem = problem or f"none of its ends ({', '.join(stated_types)[:MAX_NAME]}) is among the types"
        ends.append(types)
    if problem:
        suggestion.notes.append(f"The relation {name[:MAX_NAME]!r} was left out: {problem}.")
        return
    description = _line(fields.get("description"))[:MAX_DESCRIPTION]
    suggestion.relations.append(RelationRule(name=name, description=description, domain=ends[0], range=ends[1]))


def _name_problem(name: str, others: Iterator[str], *, is_full: bool) -> str:
    """Return why a name cannot be used, "" if it can."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        return "it has no usable name"
    if _form(name) in map(_form, others):
        return "it is a duplicate"
    return "there are enough others" if is_full else ""


def _domain(value: object) -> str:
    text = _line(value)
    ends = [end for _, end in sentence_spans(text)[:MAX_SENTENCES] if end <= MAX_DOMAIN]
    return text[: ends[-1]] if ends else text[:MAX_DOMAIN]


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    """Yield the objects of a list; a plain text in it is a name, and so is each key of an object."""
    if isinstance(value, dict):
        value = [
            {"name": name, **(fields if isinstance(fields, dict) else {"description": fields})}
            for name, fields in value.items()
        ]
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield entry
        elif isinstance(entry, str):
            yield {"name": entry}


def _lines(value: object) -> list[str]:
    parts = [value] if isinstance(value, str) else value
    return [line for part in (parts if isinstance(parts, list) else ()) if (line := _line(part))]


def _line(value: object) -> str:
    return escape_control_tokens(" ".join(value.split())) if isinstance(value, str) else ""


def _form(name: str) -> str:
    """Return a key that different spellings of a name share, such as "Natural objects" and "NaturalObject"."""
    form = re.sub(r"[\W_]+", "", name.casefold())
    return form.removesuffix("s") if len(form) > 3 else form
