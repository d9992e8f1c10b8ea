"""Recognition: which of the facts near a question are of use to it, told by a model or by what the question names.

With a model it is the recognition memory of HippoRAG 2. Without one that paper keeps the nearest facts as they are, of
which most tell of something else; those that tell of a thing the question names do nearly as well as a perfect filter.
"""

from collections.abc import Sequence

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.evidence import Scored
from quipu.model.ids import relation_ends
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.prompts import question as prompt
from quipu.retrieve.steps.names import link_names
from quipu.retrieve.steps.said import read_numbers
from quipu.retrieve.strategy import Model

N_FACTS = 5  # that are shown to a model, or kept without one

Recognised = tuple[list[Scored], tuple[str, ...]]


async def recognise(facts: Sequence[Scored], query: Query, view: ReadView, model: Model | None) -> Recognised:
    """Return those of some facts, nearest first, that are of use, at most `N_FACTS`, and notes for the trace."""
    if not facts:
        return [], ()
    if model is None:
        return await _by_names(facts, query, view, "no language model")
    shown = facts[:N_FACTS]
    relations = await view.relations([fact.id for fact in shown])
    items = [(f"{r.source_name} – {r.target_name}", r.description or ", ".join(r.keywords)) for r in relations]
    request = ChatRequest(
        messages=prompt.render_facts(query.text, items),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.FACTS_SCHEMA,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )
    (reply,) = await model.ask([request])
    numbers = read_numbers(reply, "relevant", len(items))
    if numbers is None:
        return await _by_names(facts, query, view, "the model did not say which facts are of use")
    kept = {relations[number - 1].id for number in numbers}
    return [fact for fact in shown if fact.id in kept], (f"facts of use, says the model: {len(kept)} of {len(shown)}",)


async def _by_names(facts: Sequence[Scored], query: Query, view: ReadView, why: str) -> Recognised:
    """Return the nearest facts of what the question names; where there are none the nearest of all."""
    named = {key for name in await link_names(query.text, view) for key in name.keys}
    kept = [fact for fact in facts if named.intersection(relation_ends(fact.id))][:N_FACTS]
    if kept:
        return kept, (f"{why}: the nearest facts about what the question names count",)
    return list(facts[:N_FACTS]), (f"{why}, and no fact near tells of what the question names: the nearest count",)
