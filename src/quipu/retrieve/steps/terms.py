"""Terms: what a question names, and the types its answer may have, told by a model or by the question's words."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.prompts import question as prompt
from quipu.retrieve.steps.names import link_names
from quipu.retrieve.steps.said import read_texts
from quipu.retrieve.strategy import Model
from quipu.text.questions import answer_entity_types


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Names in a question, the types of its answer, and what the trace should say of them."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    notes: tuple[str, ...] = ()


async def find_terms(query: Query, types: Sequence[str], view: ReadView, model: Model | None) -> Terms:
    """Return what a model says of a question, of `types` those there are; without one, or a reply, what rules say.

    Where neither finds a name, the question as a whole stands in.
    """
    if model is None:
        return await _by_rules(query, types, view, ("no language model: names and types are told by the words",))
    request = ChatRequest(
        messages=prompt.render_terms(query.text, types),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.TERMS_SCHEMA,
        lifetime=ReplyLifetime.REVISION,  # the types are those of the documents
        subject=query.text,
    )
    (reply,) = await model.ask([request])
    names, said = read_texts(reply, "names"), read_texts(reply, "answer_types")
    if not names and not said:
        note = "the model's reply holds no names: the words of the question tell"
        return await _by_rules(query, types, view, (note,))
    known = {each.casefold(): each for each in types}
    found = [known[each.casefold()] for each in said if each.casefold() in known]
    return Terms(
        names=names[: prompt.MAX_NAMES] or (query.text,), types=tuple(dict.fromkeys(found))[: prompt.MAX_TYPES]
    )


async def _by_rules(query: Query, types: Sequence[str], view: ReadView, notes: tuple[str, ...]) -> Terms:
    named = tuple(dict.fromkeys(name.surface for name in await link_names(query.text, view)))
    return Terms(
        names=named[: prompt.MAX_NAMES] or (query.text,),
        types=answer_entity_types(query.text, types)[: prompt.MAX_TYPES],
        notes=notes,
    )
