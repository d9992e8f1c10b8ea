"""All prompts whose instructions a user can replace, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from quipu.prompts import (
    aggregate,
    answer,
    community_search,
    drift,
    extraction,
    picture,
    question,
    report,
    summary,
    tuning,
)
from quipu.prompts.instructions import Instructions

PROMPTS: Mapping[str, Instructions] = MappingProxyType(
    {
        instructions.name: instructions
        for instructions in (
            extraction.INSTRUCTIONS,
            extraction.GLEANING,
            picture.DESCRIPTION,
            picture.PAGE,
            summary.INSTRUCTIONS,
            report.INSTRUCTIONS,
            aggregate.INSTRUCTIONS,
            aggregate.RELATION_INSTRUCTIONS,
            tuning.INSTRUCTIONS,
            question.REWRITE,
            question.KEYWORDS,
            question.TERMS,
            question.FACTS,
            community_search.POINTS,
            community_search.RATING,
            drift.HYDE,
            drift.PRIMER,
            drift.FOLLOW_UP,
            answer.INSTRUCTIONS,
            answer.INSTRUCTIONS_WITHOUT_EVIDENCE,
        )
    }
)
