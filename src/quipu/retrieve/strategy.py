"""Strategy: what every retrieval method is, and the tools it may use."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quipu.model.chat import ChatRequest
from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.providers import Embedder, Tokenizer
from quipu.ports.store import ReadView
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex


class Model(Protocol):
    """A language model, as a strategy may ask it."""

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        """Return the text of each reply, in order; "" for a request that failed, of which the trace then says why.

        All are asked at once. No view is open meanwhile: the search is left, and begun again once the replies are
        there. So a strategy asks as a pure function of what it found, and everything before costs twice. Only where
        documents change again and again, and with them what is asked, the view is held in the end.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a strategy may use beside the view. Nothing here changes the index.

    `model` is None where there is none: a method then goes as far as it can without, and says what it left out.
    """

    vectors: VectorIndex
    embedder: Embedder
    topology: TopologyIndex
    tokenizer: Tokenizer
    model: Model | None = None


Retrieve = Callable[[Query, ReadView, Tools], Awaitable[Evidence]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A retrieval method under its name.

    `retrieve` is a pure function of its arguments: the same query on the same revision finds the same evidence in the
    same order. It returns scored ids with reasons, never text. `after` names the system or paper it follows, `needs`
    what it reads: a derivation made on demand by its name in `quipu.derive.catalog`; such as are in `better_with` it
    reads where they have been made, and says so where they have not. `n_model_calls` are the most calls of a language
    model made for it before the answer, where there is a model and options are as they are by default;
    `model_calls` says it in words where that number is not the whole truth. `when` tells a user when to choose it.
    `wants_keywords` says that it searches for what a question names and is about, which a model tells better than its
    words; `looks_up` is False where nothing is searched.
    """

    name: str
    retrieve: Retrieve
    summary: str
    after: str
    when: str
    needs: tuple[str, ...] = ()
    better_with: tuple[str, ...] = ()
    n_model_calls: int = 0
    model_calls: str = ""
    ranks_passages: bool = True
    wants_keywords: bool = False
    looks_up: bool = True
