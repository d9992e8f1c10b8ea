"""context: the passages most similar to the question, and those that they are linked with: a graph of passages alone.

Source: Y. Wang et al., "Knowledge Graph Prompting for Multi-Document Question Answering" (AAAI 2024), sections 3 and 4.
No entity is read, so it finds what no name connects: a term and the passage that defines it, a section and the one that
refers to it, a table and the text that cites it.

1. Similarity: the mean of the shares by words and by vectors, as in `weave`.
2. Seeds: the 5 passages most similar to the question.
3. Links: a passage is linked with the passages that its phrases name by a heading, a defined term, a caption or the
   first cell of a table's row; with the targets of its hyperlinks and the passages that link to its document; and with
   those that share one of its rare terms. A link that more than 8 passages share is dropped.
4. Walk: personalised PageRank over passages and what they share. It restarts at the seeds, by similarity to the power
   of 8. Links weigh their IDF, those by name or hyperlink three times as much.
5. Fusion: the logarithm (log1p) of the walk and the similarity, 0.6 to 0.4.

Differences from the paper:
- A language model chooses which neighbour is read next → a walk ranks all, because no model is asked.
- Passages are linked if they share one of their best keywords by TF-IDF → any rare term, or a phrase that names one of
  them, because what a heading names is what others refer to.
- Pages and tables are nodes → the phrases that name them are, because a passage knows its headings, captions and rows.
- The graph is built ahead → full text keeps the names of passages, and the rest is read from the seeds, because an
  index must not grow with the pairs of its passages.
"""

from dataclasses import dataclass

from quipu.model.evidence import Evidence, Hit
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.retrieve.steps.graph_walk import round_scores, top_chunks
from quipu.retrieve.steps.passage_links import MAX_SHARED, N_SEEDS, follow_links
from quipu.retrieve.steps.seeds import score_by_words_and_vectors
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.words import content_terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOptions(Options):
    """The options of `context`."""

    context_seeds: int = option(N_SEEDS, "Passages whose links are followed.", between=(1, 1_000))
    context_max_shared: int = option(
        MAX_SHARED, "Passages that a link may join; others are dropped.", between=(2, 10**4)
    )
    context_link_weight: float = option(0.6, "Weight of links beside similarity.", between=(0.0, 1.0))


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages by similarity and links."""
    options = query.options_of(ContextOptions)
    topology = await tools.topology.open(view)
    (by_words, by_vector), searches = await score_by_words_and_vectors(query, topology, view, tools)
    similarity = (by_words + by_vector) / 2
    terms = tuple(dict.fromkeys(content_terms_of(query.text)))
    n_seeds, max_shared = options.context_seeds, options.context_max_shared
    walk = await follow_links(terms, similarity, view, n_seeds=n_seeds, max_shared=max_shared)
    weight = options.context_link_weight if walk.links else 0.0
    fused = round_scores((1 - weight) * similarity + weight * walk.shares)
    best = await top_chunks(fused, query.chunk_top_k, view)
    numbers = await view.numbers(NodeKind.CHUNK, [chunk.id for chunk in best])
    links = walk.reasons(numbers.values())
    reasons = {
        chunk: f"similarity {similarity[number]:.3f}{links.get(number, '')}" for chunk, number in numbers.items()
    }
    return Evidence(
        chunks=tuple(Hit(id=chunk.id, score=chunk.score, reason=reasons[chunk.id]) for chunk in best),
        seeds=searches,
        notes=(f"{format_count(len(walk.links), 'link')} of {format_count(len(walk.reset), 'passage')} followed",),
    )


STRATEGY = Strategy(
    name="context",
    retrieve=retrieve,
    options=(ContextOptions,),
    summary="similar passages, and those linked with them by headings, definitions, tables, hyperlinks and rare terms",
    after="Knowledge Graph Prompting",
    when="documents define terms in one place and use them in another, or refer to each other: manuals, wikis",
    needs=("full text", "chunk vectors", "topology"),
)
