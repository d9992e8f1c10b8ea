"""bypass: no retrieval at all, the baseline every other strategy has to beat."""

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.strategy import Strategy, Tools


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return no evidence: the question alone goes on to the answer."""
    note = "bypass looks nothing up: the index was not searched"
    return Evidence(notes=(note,), ranks_passages=False, searches_index=False)


STRATEGY = Strategy(
    name="bypass",
    retrieve=retrieve,
    summary="the question alone, nothing looked up",
    after="LightRAG (bypass)",
    when="to see what an answer owes to the index; without a language model it answers nothing",
    ranks_passages=False,
    searches_index=False,
)
