"""Kind: what a request asks of a model."""

from enum import StrEnum


class Kind(StrEnum):
    """What is asked for. `glean`: what an extraction missed. `continue`: the rest of one that was cut short."""

    EXTRACT = "extract"
    GLEAN = "glean"
    CONTINUE = "continue"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    REWRITE = "rewrite"
    JUDGE = "judge"
    OTHER = "other"
    EMBED = "embed"
    RERANK = "rerank"


EXTRACTIONS = frozenset({Kind.EXTRACT, Kind.GLEAN, Kind.CONTINUE})
VECTORS = frozenset({Kind.EMBED, Kind.RERANK})
CHATS = frozenset(Kind) - VECTORS
