"""bypass: no retrieval. The question alone goes to the language model.

A baseline that every other strategy has to beat; LightRAG's query mode "bypass".
"""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return no evidence."""
    note = "bypass does not search the index"
    return Evidence(notes=(note,), ranks_passages=False, searches_index=False)


STRATEGY = Strategy(
    name="bypass",
    retrieve=retrieve,
    summary="the question alone, without searching the index",
    after="LightRAG (bypass)",
    when="to see what the index adds to an answer; without a language model there is no answer",
    ranks_passages=False,
    searches_index=False,
)
