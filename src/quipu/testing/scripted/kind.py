"""Kind: what a request asks of a model."""

from enum import StrEnum


class Kind(StrEnum):
    """What is asked for. `glean`: what an extraction missed. `continue`: the rest of one that was cut short.

    Of reports on communities: `points` they hold, how to `rate` one, to `imagine` one, `primer` for a first answer from
    some, `follow-up` for an answer to a question that led to. `facts`: which have to do with a question. `terms`: what
    a question names, and the types of its answer. `aggregate`: what things that are alike are together; `connect`: what
    two such groups have to do with each other. `tune`: how documents should be read.
    """

    EXTRACT = "extract"
    GLEAN = "glean"
    CONTINUE = "continue"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    REWRITE = "rewrite"
    JUDGE = "judge"
    POINTS = "points"
    RATE = "rate"
    IMAGINE = "imagine"
    PRIMER = "primer"
    FOLLOW_UP = "follow-up"
    FACTS = "facts"
    TERMS = "terms"
    AGGREGATE = "aggregate"
    CONNECT = "connect"
    TUNE = "tune"
    OTHER = "other"
    EMBED = "embed"
    RERANK = "rerank"


EXTRACTIONS = frozenset({Kind.EXTRACT, Kind.GLEAN, Kind.CONTINUE})
VECTORS = frozenset({Kind.EMBED, Kind.RERANK})
CHATS = frozenset(Kind) - VECTORS
