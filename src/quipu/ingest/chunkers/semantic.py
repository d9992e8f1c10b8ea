"""semantic: cuts where the subject changes, as the vectors of the sentences before and after a place tell.

Places between sentences are compared as in M. Hearst, "TextTiling" (Computational Linguistics 23(1), 1997): the
sentences just before with those just after, here by the cosine of their summed vectors. Breaks are the places where
the likeness falls below that of nearly all others in the document, by a percentile, as in G. Kamradt, "5 Levels of Text
Splitting" (2023), level 4. Ours is that a break leaves room on both sides, that a stretch over budget is cut where it
is least alike, and that tables and headings keep together as they do in `structure`.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from quipu.ingest.chunkers.chunker import Chunker, tokens_for_size
from quipu.ingest.chunkers.cuts import cut_by_level, cut_in_order, take
from quipu.ingest.chunkers.manuscript import Manuscript, blocks_of
from quipu.ingest.chunkers.places import AFTER_HEADING, WORD, places_of, starts_of
from quipu.model.chunking import PERCENTILE, SEMANTIC, Chunking
from quipu.model.document import ParsedDocument

_ROOM = 8  # a break leaves this part of the budget on both sides
_MARGINS = (3, _ROOM)  # of cuts in a stretch over budget


def sentences(parsed: ParsedDocument) -> list[str]:
    """Return the text between each two places but those within sentences, in order."""
    starts = [start for start, _ in starts_of(parsed.text, blocks_of(parsed))]
    return [parsed.text[start:end].strip() for start, end in pairwise([*starts, len(parsed.text)])]


def cut(manuscript: Manuscript, chunking: Chunking, similarities: Sequence[float]) -> list[tuple[int, int]]:
    """Return a partition of the text; `similarities` holds one number for each two neighbouring `sentences`."""
    places = places_of(manuscript)
    between = [index for index, place in enumerate(places) if place.level != WORD][1:-1]
    drop_by_place = {index: -likeness for index, likeness in zip(between, similarities, strict=True)}
    joints = [index for index in between if places[index].level != AFTER_HEADING]
    joints.sort(key=lambda index: (-drop_by_place[index], places[index].rank, index))
    taken = [0, len(places) - 1]
    percentile = PERCENTILE if chunking.percentile is None else chunking.percentile
    usual = np.percentile([drop_by_place[index] for index in joints], percentile) if joints else 0.0
    for index in joints:
        if drop_by_place[index] > usual:
            take(taken, index, places, least=-(-manuscript.max_tokens // _ROOM), above=0)
    cut_in_order(taken, joints, places, manuscript.max_tokens, margins=_MARGINS)
    cut_by_level(taken, places, manuscript.max_tokens)
    return list(pairwise(places[index].start for index in taken))


CHUNKER = Chunker(
    name=SEMANTIC,
    cut=cut,
    auto_tokens=tokens_for_size,
    summary="where the likeness of neighbouring sentences drops, by their vectors",
    after="TextTiling (Hearst 1997), percentile breaks (Kamradt 2023)",
    when="a text changes its subject without saying so, as a transcript does",
    reads_vectors=True,
)
