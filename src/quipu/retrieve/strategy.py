"""Strategy: what every retrieval method is, and the tools it may use."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.embedder import Embedder
from quipu.ports.store import ReadView
from quipu.ports.vectors import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a strategy may use beside the view. Nothing here changes the index."""

    vectors: Vectors
    embedder: Embedder


Retrieve = Callable[[Query, ReadView, Tools], Awaitable[Evidence]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A retrieval method under its name.

    `retrieve` is a pure function of its arguments: the same query on the same revision finds the same evidence in the
    same order. It returns scored ids with reasons, never text. `after` names the system or paper it follows, `needs`
    the derivations it reads, `n_model_calls` the most calls of a language model made for it before the answer, where
    there is a model, `when` tells a user when to choose it. `wants_keywords` says that it searches for what a question
    names and is about, which a model tells better than its words; `looks_up` is False where nothing is searched.
    """

    name: str
    retrieve: Retrieve
    summary: str
    after: str
    when: str
    needs: tuple[str, ...] = ()
    n_model_calls: int = 0
    ranks_passages: bool = True
    wants_keywords: bool = False
    looks_up: bool = True
