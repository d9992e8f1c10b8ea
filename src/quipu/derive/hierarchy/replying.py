"""Replying: what a model says of an aggregate, read without trust; anything malformed is left out."""

from dataclasses import dataclass

from quipu.model.cluster import Finding
from quipu.text.lenient_json import parse_lenient_json

MAX_FINDINGS = 10  # LeanRAG asks for five to ten


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model makes of an aggregate."""

    name: str
    description: str
    findings: tuple[Finding, ...] = ()


def read_reply(text: str) -> Reply | None:
    """Return what a reply says of an aggregate, None where it has no name or no description."""
    value = parse_lenient_json(text)
    if not isinstance(value, dict):
        return None
    name, description = (_text(value.get(key)) for key in ("name", "description"))
    listed = value.get("findings")
    findings = [found for each in listed if (found := _finding(each))] if isinstance(listed, list) else []
    if not name or not description:
        return None
    return Reply(name=name, description=description, findings=tuple(findings[:MAX_FINDINGS]))


def _finding(value: object) -> Finding | None:
    if isinstance(value, str):
        return Finding(summary=_text(value)) if _text(value) else None
    if not isinstance(value, dict):
        return None
    summary, explanation = _text(value.get("summary")), _text(value.get("explanation"))
    if not summary:
        return Finding(summary=explanation) if explanation else None
    return Finding(summary=summary, explanation=explanation)


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
