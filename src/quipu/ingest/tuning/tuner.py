"""Tuner: from a sample to the text of an ontology file, with what it changes; or an estimate of the cost."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import unified_diff

from quipu.ingest.estimate import DocumentSurvey, estimate_cost
from quipu.ingest.tuning.name_counts import NameCounts
from quipu.ingest.tuning.ontology_writer import ontology_file
from quipu.ingest.tuning.sample import LOCAL_RULES, TuningContext, TuningSample
from quipu.ingest.tuning.suggestion import SAMPLE_TOKENS, OntologySuggestion, suggest_ontology, suggestion_request
from quipu.ingest.tuning.trial import N_EXAMPLES, Trial, short_texts
from quipu.model.event import EventSink, Progress
from quipu.model.extraction import GlossaryTerm, Ontology, TypeRule
from quipu.model.graph import OTHER_TYPE
from quipu.model.tuning import ExtractionComparison, TuningCost, TuningOrigin, TuningResult
from quipu.model.usage import Range
from quipu.prompts import tuning as prompt
from quipu.prompts.extraction import render_system

NO_MODEL = (
    "No language model reads documents here, so rules counted the names, and nothing uses the file until a model is "
    "set. With a model (setting llm), `quipu tune` describes the domain and the types, suggests relations, writes "
    "examples and compares extractions before and after."
)
_DIFF_CONTEXT = 1  # lines around a difference: the lines of a prompt are long
_SUGGESTION_OUTPUT = Range(low=300, likely=800, high=prompt.MAX_OUTPUT_TOKENS)  # tokens
_SUGGESTION_CALLS = Range(low=2, likely=2, high=4)  # a call to check the model, and one or two for a suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningTask:
    """What to tune on: a sample, the names that rules count in it, its context, and a description of their origin."""

    sample: TuningSample
    counts: NameCounts
    context: TuningContext
    origin: TuningOrigin


async def tune_ontology(task: TuningTask, on_event: EventSink) -> TuningResult:
    """Return an ontology for a sample and its effect on prompts and extractions. Without a model, rules make it.

    Nothing is written to the index, except cached replies.
    """
    context, counts = task.context, task.counts
    on_reply = _progress(1 + N_EXAMPLES + 2 * len(task.sample.compared), on_event)
    suggestion, notes = None, [NO_MODEL]
    if context.llm is not None:
        suggestion, notes = await suggest_ontology(context.llm, task.sample.learned, context)
        on_reply()
    ontology = _ontology(suggestion, counts, context)
    compared: list[ExtractionComparison] = []
    stopped = ""
    if context.extractor is not None:
        trial = Trial(context.extractor, context, on_reply)
        if suggestion:
            ontology = replace(ontology, examples=tuple(await trial.examples(task.sample.learned, ontology)))
        compared = await trial.compare(task.sample.compared, ontology)
        notes, stopped = [*notes, *trial.notes], trial.stopped
    author, type_counts = (context.author, ()) if suggestion else (LOCAL_RULES, counts.types)
    frequent = [_with_valid_type(term, ontology) for term in counts.glossary]
    tuned_options = replace(context.options, ontology=ontology)
    return TuningResult(
        file=ontology_file(ontology, by=author, origin=task.origin, counts=type_counts, suggested=frequent),
        ontology=ontology,
        method=author,
        n_documents=task.origin.n_documents,
        prompt_diff=diff_prompts(render_system(context.options.guidance), render_system(tuned_options.guidance)),
        comparisons=tuple(compared),
        notes=tuple(notes),
        stopped=stopped,
        origin=task.origin,
    )


async def estimate_tuning(sample: TuningSample, context: TuningContext) -> TuningCost | None:
    """Return what tuning on a sample would cost, by typical figures; None without a model, which is not asked."""
    if context.llm is None:
        return None
    config, price = context.ingest_config, context.price
    texts = await asyncio.to_thread(short_texts, sample.learned, N_EXAMPLES)
    examples = [replace(text.chunk, text=text.text, n_tokens=config.tokenizer.count(text.text)) for text in texts]
    chunks = [*examples, *sample.compared, *sample.compared]
    survey = DocumentSurvey(unread={str(index): chunk for index, chunk in enumerate(chunks)}, n_chunks=len(chunks))
    reading = estimate_cost(
        survey, config, model=context.model, price=price, concurrency=context.concurrency, measured=None
    )
    messages = suggestion_request(sample.learned, context, SAMPLE_TOKENS[0]).messages
    n_tokens = sum(config.tokenizer.count(message.text) for message in messages)
    input_tokens = Range(low=n_tokens, likely=n_tokens, high=2 * n_tokens)  # twice if the first reply is unusable
    money = None
    if reading.cost is not None and price is not None:
        suggestion_cost = input_tokens.times(price.input).plus(_SUGGESTION_OUTPUT.times(price.output))
        money = reading.cost.plus(suggestion_cost)
    return TuningCost(
        model=context.model,
        calls=reading.calls.plus(_SUGGESTION_CALLS),
        input_tokens=reading.input_tokens.plus(input_tokens),
        output_tokens=reading.output_tokens.plus(_SUGGESTION_OUTPUT),
        money=money,
        currency=price.currency if price else "",
    )


def diff_prompts(before: str, after: str) -> str:
    """Return a unified diff of two prompts, "" if they are equal."""
    lines = unified_diff(
        before.splitlines(), after.splitlines(), "prompt before", "prompt tuned", lineterm="", n=_DIFF_CONTEXT
    )
    return "\n".join(lines)


def _ontology(suggestion: OntologySuggestion | None, counts: NameCounts, context: TuningContext) -> Ontology:
    """Return the suggested or counted types and relations, with the user's own aliases of them, and the glossary."""
    current, current_types = context.options.ontology, context.options.types
    rules = suggestion.types if suggestion else counts.type_rules(current_types)
    current_by_name = {rule.name: rule for rule in current.types}
    types = tuple(
        replace(rule, aliases=current_by_name[rule.name].aliases) if rule.name in current_by_name else rule
        for rule in rules
    )
    ontology = Ontology(
        is_strict=current.is_strict,
        types=types or tuple(rule for rule in current_types if rule.name != OTHER_TYPE),
        relations=tuple(suggestion.relations) if suggestion else (),
        domain=suggestion.domain if suggestion else counts.domain,
    )
    return replace(ontology, glossary=tuple(_with_valid_type(term, ontology) for term in current.glossary))


def _with_valid_type(term: GlossaryTerm, ontology: Ontology) -> GlossaryTerm:
    """Return the term, without its type if the ontology does not have it."""
    names = {rule.name for rule in (*ontology.types, TypeRule(name=OTHER_TYPE))}
    return term if term.type in names else replace(term, type="")


def _progress(n_expected: int, on_event: EventSink) -> Callable[[], None]:
    """Return a function to call for each reply, which sends a Progress event."""
    n_done = 0

    def on_reply() -> None:
        nonlocal n_done
        n_done += 1
        on_event(Progress(stage="ask", n_done=n_done, n_total=max(n_done, n_expected)))

    return on_reply
