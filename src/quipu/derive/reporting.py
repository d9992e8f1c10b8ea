"""One report by a language model: asked as JSON, repaired where it can be, quoted from the documents where not."""

from collections.abc import Iterator
from dataclasses import dataclass

from quipu.derive.asking import Ask, ask_for
from quipu.derive.quoting import QUOTED_AFTER_FAILURE, quoted
from quipu.derive.report_material import Material
from quipu.errors import Refused, TooLong
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import ClusterReport, Finding
from quipu.prompts import report as prompt
from quipu.text.lenient_json import parse_lenient_json

MAX_WORDS = 300
MAX_OUTPUT_TOKENS = 2_048
MAX_TITLE, MAX_TEXT = 200, 3_000  # characters
MAX_FINDINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A report, and why it had to be quoted ("": it is the model's)."""

    report: ClusterReport
    failure: str = ""


async def write_report(material: Material, ask: Ask, language: str) -> Written:
    """Return the model's report, or quotes where it has none to give.

    Raises Overloaded where its reply broke off, and what `ask` does but Refused and TooLong.
    """
    request = request_for(material, language)
    try:
        completion = await ask_for("a report", request, ask, lambda text: parsed(text, material, "") is not None)
    except (Refused, TooLong) as error:
        return Written(report=quoted(material, QUOTED_AFTER_FAILURE), failure=str(error))
    report = parsed(completion.text, material, completion.model)
    assert report is not None
    return Written(report=report)


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
        lifetime=ReplyLifetime.ALL_DOCUMENTS,
        revision=material.revision,
    )


def parsed(text: str, material: Material, model: str) -> ClusterReport | None:
    """Return the report a reply holds, None where it has no summary."""
    said = parse_lenient_json(text)
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
