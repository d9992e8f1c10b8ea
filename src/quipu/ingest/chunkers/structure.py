"""structure: cuts along the text's own joints, chosen so that an edit moves few of them.

Places are tried in order: best level first (sections, paragraphs, lines, sentences, words), and within a level by a
hash of the characters on either side. A place becomes a cut where the gap between the cuts around it is over budget and
it leaves enough text on both sides.

This is random sequential adsorption (A. Rényi, "On a one-dimensional problem concerning random space filling", 1958)
with a hash for the order of arrival. What becomes of a place depends on nearby places tried before it, through chains
so short that an edit is forgotten a chunk or two away; packing from left to right would move every cut that follows.
Gaps between half the budget and all of it have a mean of 0.67 of it (half of 1 / 0.7476, Rényi's constant).
"""

from collections.abc import Sequence
from itertools import pairwise

from quipu.ingest.chunkers.chunker import Chunker, tokens_for_size
from quipu.ingest.chunkers.cuts import cut_by_level
from quipu.ingest.chunkers.manuscript import Manuscript
from quipu.ingest.chunkers.places import places_of
from quipu.model.chunking import STRUCTURE, Chunking


def cut(manuscript: Manuscript, _chunking: Chunking, _similarities: Sequence[float]) -> list[tuple[int, int]]:
    """Return a partition of the text. A heading stays with what follows it, small neighbouring sections together."""
    places = places_of(manuscript)
    taken = [0, len(places) - 1]
    cut_by_level(taken, places, manuscript.max_tokens)
    return list(pairwise(places[index].start for index in taken))


CHUNKER = Chunker(
    name=STRUCTURE,
    cut=cut,
    auto_tokens=tokens_for_size,
    summary="along sections, paragraphs and sentences, at places chosen by what stands around them",
    after="random sequential adsorption (Rényi 1958)",
    when="always, unless another fits better: an edit costs only the chunks it touches",
)
