"""Extractions as kept replies: JSON in, JSON out."""

import json
from dataclasses import fields

from quipu.errors import Corrupt
from quipu.model.extraction import Extraction, FoundAlias, FoundClaim, FoundEntity, FoundRelation


def to_payload(extraction: Extraction) -> str:
    """Return the extraction as JSON."""
    return json.dumps(extraction, default=_record, ensure_ascii=False, separators=(",", ":"))


def from_payload(payload: str) -> Extraction:
    """Return the extraction a payload holds; raises Corrupt where it holds none."""
    try:
        kept = json.loads(payload)
        return Extraction(
            entities=tuple(FoundEntity(**found) for found in kept["entities"]),
            relations=tuple(
                FoundRelation(**{**found, "keywords": tuple(found["keywords"])}) for found in kept["relations"]
            ),
            aliases=tuple(FoundAlias(**found) for found in kept["aliases"]),
            claims=tuple(FoundClaim(**found) for found in kept.get("claims", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(
            f"A kept reply cannot be read ({error}).",
            remedy="Run `quipu verify`; remove the document and add it again.",
        ) from error


def _record(found: Extraction | FoundEntity | FoundRelation | FoundAlias | FoundClaim) -> dict[str, object]:
    return {field.name: getattr(found, field.name) for field in fields(found)}
