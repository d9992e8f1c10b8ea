"""One report by a language model: asked as JSON, repaired where it can be, quoted from the documents where not."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from quipu.derive.quoting import QUOTED_AFTER_FAILURE, quoted
from quipu.derive.report_material import Material
from quipu.errors import Refused, TooLong
from quipu.model.chat import ChatRequest, Completion, Finish, Lifetime, Role
from quipu.model.cluster import ClusterReport, Finding
from quipu.prompts import report as prompt
from quipu.text.loose_json import loads_loosely

MAX_WORDS = 300
MAX_OUTPUT_TOKENS = 2_048
MORE_OUTPUT = 2  # how many times as much room a reply gets, once, that was cut short
MAX_TITLE, MAX_TEXT = 200, 3_000  # characters
MAX_FINDINGS = 10

Ask = Callable[[ChatRequest], Awaitable[Completion]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A report, and why it had to be quoted ("": it is the model's)."""

    report: ClusterReport
    failure: str = ""


async def write_report(material: Material, ask: Ask, language: str) -> Written:
    """Return the model's report, or quotes where it has none to give. Raises what `ask` does but Refused and TooLong.

    What cannot be read is asked for once more.
    """
    request, failure = request_for(material, language), ""
    try:
        for attempt in range(2):
            completion = await _whole(replace(request, attempt=attempt), ask)
            if report := parsed(completion.text, material, completion.model):
                return Written(report=report)
            failure = f"The model's reply was no report ({completion.finish}): {completion.text.strip()[:60]!r}."
    except (Refused, TooLong) as error:
        failure = str(error)
    return Written(report=quoted(material, QUOTED_AFTER_FAILURE), failure=failure)


def request_for(material: Material, language: str) -> ChatRequest:
    """Return what is asked; the reply goes with the first of all documents that speak of the community."""
    notes = material.notes
    return ChatRequest(
        messages=prompt.render(
            notes.reports, notes.subjects, notes.connections, language=language, max_words=MAX_WORDS
        ),
        role=Role.REPORT,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        schema=prompt.SCHEMA,
        documents=material.documents,
        lifetime=Lifetime.ALL_DOCUMENTS,
    )


def parsed(text: str, material: Material, model: str) -> ClusterReport | None:
    """Return the report a reply holds, None where it has no summary."""
    said = loads_loosely(text)
    if not isinstance(said, dict):
        return None
    summary = _text(said.get("summary"))
    if not summary:
        return None
    in_its_place = quoted(material)
    return ClusterReport(
        cluster=material.cluster.id,
        title=_text(said.get("title"))[:MAX_TITLE] or in_its_place.title,
        summary=summary,
        findings=tuple(_findings(said.get("findings")))[:MAX_FINDINGS],
        rating=_rating(said.get("rating"), in_its_place.rating),
        chunks=in_its_place.chunks,
        inputs_hash=material.cluster.inputs_hash,
        model=f"{model} report/{prompt.VERSION}",
    )


async def _whole(request: ChatRequest, ask: Ask) -> Completion:
    completion = await ask(request)
    if completion.finish is Finish.LENGTH:
        completion = await ask(replace(request, max_output_tokens=request.max_output_tokens * MORE_OUTPUT))
    return completion


def _findings(said: object) -> Iterator[Finding]:
    for each in said if isinstance(said, list) else ():
        if isinstance(each, dict):
            summary, explanation = _text(each.get("summary")), _text(each.get("explanation"))
            if summary or explanation:
                yield Finding(summary=summary or explanation, explanation=explanation if summary else "")
        elif text := _text(each):
            yield Finding(summary=text)


def _rating(said: object, otherwise: float) -> float:
    try:
        rating = float(said) if isinstance(said, int | float | str) else otherwise
    except ValueError:
        return otherwise
    return round(min(10.0, max(0.0, rating)), 1) if rating == rating else otherwise  # noqa: PLR0124 - not a number


def _text(said: object) -> str:
    return " ".join(said.split())[:MAX_TEXT] if isinstance(said, str) else ""
