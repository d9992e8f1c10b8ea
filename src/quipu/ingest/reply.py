"""Extractions as kept replies: JSON in, JSON out."""

import json
from dataclasses import fields

from quipu.errors import Corrupt
from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation, Extraction


def to_payload(extraction: Extraction) -> str:
    """Return the extraction as JSON."""
    return json.dumps(extraction, default=_record, ensure_ascii=False, separators=(",", ":"))


def from_payload(payload: str) -> Extraction:
    """Return the extraction a payload holds; raises Corrupt where it holds none."""
    try:
        kept = json.loads(payload)
        return Extraction(
            entities=tuple(ExtractedEntity(**found) for found in kept["entities"]),
            relations=tuple(
                ExtractedRelation(**{**found, "keywords": tuple(found["keywords"])}) for found in kept["relations"]
            ),
            aliases=tuple(ExtractedAlias(**found) for found in kept["aliases"]),
            claims=tuple(ExtractedClaim(**found) for found in kept.get("claims", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(
            f"A kept reply cannot be read ({error}).",
            remedy="Run `quipu verify`; remove the document and add it again.",
        ) from error


def _record(
    found: Extraction | ExtractedEntity | ExtractedRelation | ExtractedAlias | ExtractedClaim,
) -> dict[str, object]:
    return {field.name: getattr(found, field.name) for field in fields(found)}
