"""Working out: from a sample to the text of an ontology file, and what it changes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from quipu.ingest.tuning.asking import Suggested, ask_for_suggestion
from quipu.ingest.tuning.counting import Counted
from quipu.ingest.tuning.difference import prompt_diff
from quipu.ingest.tuning.means import RULES, Means
from quipu.ingest.tuning.passages import MAX_EXAMPLES
from quipu.ingest.tuning.sampling import Sample
from quipu.ingest.tuning.suggestion import Suggestion
from quipu.ingest.tuning.trying import Trial
from quipu.ingest.tuning.writing import file_text
from quipu.model.event import EventSink, Progress
from quipu.model.extraction import GlossaryTerm, Ontology, TypeRule
from quipu.model.graph import OTHER_TYPE
from quipu.model.tuning import TuningOrigin, TuningResult
from quipu.prompts.extraction import render_system

NO_MODEL = (
    "No language model reads documents here, so this was counted by rules, and nothing reads the file until one does. "
    "With one (setting llm) `quipu tune` words the domain, tells types apart, suggests relations, writes examples and "
    "compares what is found before and after."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be worked out: a sample, what rules count, with what, and what all of it comes from."""

    sample: Sample
    counted: Counted
    means: Means
    origin: TuningOrigin


async def work_out(work: Work, on_event: EventSink) -> TuningResult:
    """Return what a model suggests for a sample and makes of its texts, or what rules count; nothing is kept."""
    means, counted = work.means, work.counted
    step = _steps(1 + MAX_EXAMPLES + 2 * len(work.sample.compared), on_event)
    found = Suggested(suggestion=None, notes=(NO_MODEL,))
    if means.llm is not None:
        found = await ask_for_suggestion(means.llm, work.sample.read, means)
        step()
    ontology = _ontology(found.suggestion, counted, means)
    notes, compared, stopped = list(found.notes), [], ""
    if means.reader is not None:
        trial = Trial(means.reader, means, step)
        if found.suggestion:
            ontology = replace(ontology, examples=tuple(await trial.examples(work.sample.read, ontology)))
        compared = await trial.compare(work.sample.compared, ontology)
        notes, stopped = [*notes, *trial.notes], trial.stopped
    by, counts = (means.by, ()) if found.suggestion else (RULES, counted.types)
    suggested = [_fitting(term, ontology) for term in counted.glossary]
    now, tuned = means.options.guidance, replace(means.options, ontology=ontology).guidance
    return TuningResult(
        file=file_text(ontology, by=by, origin=work.origin, counts=counts, suggested=suggested),
        ontology=ontology,
        method=by,
        n_documents=work.origin.n_documents,
        prompt_diff=prompt_diff(render_system(now), render_system(tuned)),
        comparisons=tuple(compared),
        notes=tuple(notes),
        stopped=stopped,
        origin=work.origin,
    )


def _ontology(suggestion: Suggestion | None, counted: Counted, means: Means) -> Ontology:
    """Return what was suggested or counted, with what the user's own ontology says of the same types, and names."""
    before, known = means.options.ontology, means.options.types
    rules = suggestion.types if suggestion else counted.rules(known)
    own = {rule.name: rule for rule in before.types}
    types = tuple(replace(rule, aliases=own[rule.name].aliases) if rule.name in own else rule for rule in rules)
    made = Ontology(
        is_strict=before.is_strict,
        types=types or tuple(rule for rule in known if rule.name != OTHER_TYPE),
        relations=tuple(suggestion.relations) if suggestion else (),
        domain=suggestion.domain if suggestion else counted.domain,
    )
    return replace(made, glossary=tuple(_fitting(term, made) for term in before.glossary))


def _fitting(term: GlossaryTerm, ontology: Ontology) -> GlossaryTerm:
    """Return a term of the glossary, without a type that is none of the ontology's."""
    names = {rule.name for rule in (*ontology.types, TypeRule(name=OTHER_TYPE))}
    return term if term.type in names else replace(term, type="")


def _steps(n_expected: int, on_event: EventSink) -> Callable[[], None]:
    """Return what tells that one more reply has come."""
    n_done = 0

    def step() -> None:
        nonlocal n_done
        n_done += 1
        on_event(Progress(stage="ask", n_done=n_done, n_total=max(n_done, n_expected)))

    return step
