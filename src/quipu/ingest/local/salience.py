"""Salience: which names a chunk is most about, and how many to keep."""

from collections.abc import Sequence
from math import log2

from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.occurrence import Cue

SHORT_TOKENS = 200
SHORT_LIMIT = 14
LONG_TOKENS = 1_200
LONG_LIMIT = 40

_BY_CUE = {
    Cue.TITLE: 9.0,
    Cue.SUBJECT: 7.0,
    Cue.SPEAKER: 6.0,
    Cue.HEADING: 5.0,
    Cue.QUOTED: 4.5,
    Cue.CAPITALS: 4.0,
    Cue.HAN: 4.0,
    Cue.STARTER: 3.0,
    Cue.HAN_BARE: 2.0,
    Cue.TERM: 2.0,
}


def entity_limit(text: str) -> int:
    """Return how many entities a chunk may have: 14 up to 200 tokens (bytes / 4), rising evenly to 40 at 1,200."""
    tokens = len(text.encode("utf-8", "surrogatepass")) / 4
    share = (tokens - SHORT_TOKENS) / (LONG_TOKENS - SHORT_TOKENS)
    return round(SHORT_LIMIT + (LONG_LIMIT - SHORT_LIMIT) * min(max(share, 0.0), 1.0))


def most_salient(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return up to `limit` candidates in their given order, the least salient left out (ties: the later)."""
    if len(candidates) <= limit:
        return list(candidates)
    ranked = sorted(range(len(candidates)), key=lambda i: (-salience(candidates[i]), i))
    return [candidates[i] for i in sorted(ranked[:limit])]


def salience(candidate: Candidate) -> float:
    """Return how much a chunk seems to be about a name: by cue, number of places and length of the name."""
    n_words = min(len(candidate.name.split()), 4)
    return round(_BY_CUE[candidate.cue] + log2(1 + len(candidate.places)) + 0.5 * (n_words - 1), 6)
