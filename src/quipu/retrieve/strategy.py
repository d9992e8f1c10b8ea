"""Strategy: what every retrieval method is, and the tools it may use.

Differences from several sources:
- The tokenizer of a model counts tokens → four bytes of text count as one, because any model can be used.
- Passages get what entities, relations and reports leave of the context → they keep at least the share
  `min_passage_share` of it, because small contexts would have none.
- Nearest neighbours are found by a graph of vectors or by comparing all → all are compared up to `exact_below` vectors,
  and beyond it those with near sketches, because the order in which vectors were added must not matter.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from quipu.model.chat import ChatRequest
from quipu.model.evidence import Evidence
from quipu.model.query import Options, OptionValue, Query
from quipu.ports.providers import Embedder, Tokenizer
from quipu.ports.store import ReadView
from quipu.ports.topology import TopologyIndex
from quipu.ports.vector_index import VectorIndex


class Model(Protocol):
    """A language model, as a strategy may ask it."""

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str]:
        """Return the text of each reply, in order; "" for a request that failed, with a note in the trace.

        All requests are sent at the same time. No view is open meanwhile: the snapshot behind the strategy's view is
        released, and one of the same revision is opened before this returns, so the strategy simply goes on. What it
        read before is still true: ids, scores and topologies may be kept across the call.

        If the index changed meanwhile, an exception that a strategy must not catch leaves it, and it is run again from
        its first line on a view of the new revision. Requests it makes again are answered from the replies it has
        paid for. So what a strategy asks is a pure function of what it read. If the index keeps changing, and with it
        the requests, the view stays open in the end while the model is asked. After many rounds replies are empty.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a strategy may use beside the view. Nothing here changes the index.

    `embedder` releases the view as `Model.ask` does, where it is a remote service. `model` is None where no model is
    set: a strategy then does what it can without one, and adds a note about what it left out.
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

    `retrieve` is a pure function of its arguments: the same query on the same revision gives the same evidence in the
    same order. It returns ids with scores and reasons, never text. It reads and asks in one task, since the view is
    closed while a service is asked. `summary` says in a sentence what it does, `after` which system or paper it
    follows, `when` tells a user when to choose it.

    `needs` names derivations (see `quipu.derive.catalog`) without which it cannot run. It also reads those in
    `better_with`, if they have been made, and adds a note if not. `n_model_calls` is the largest number of model calls
    before the answer, with default options; `model_calls` says so in words where that number alone would mislead.

    `options` are the classes of its own options; it gets them by `query.options_of(...)`. The options of a `Query`
    belong to every strategy. `faithful` are the values of these in its source, by setting, where they are not the
    defaults; its own options declare theirs.

    `ranks_passages` is False where the evidence has no order of passages. `wants_keywords` says that it searches for
    keywords of the question, which a model finds better than rules. `searches_index` is False if nothing is searched.
    """

    name: str
    retrieve: Retrieve
    summary: str
    after: str
    when: str
    needs: tuple[str, ...] = ()
    better_with: tuple[str, ...] = ()
    options: tuple[type[Options], ...] = ()
    faithful: Mapping[str, OptionValue] = field(default_factory=dict)
    n_model_calls: int = 0
    model_calls: str = ""
    ranks_passages: bool = True
    wants_keywords: bool = False
    searches_index: bool = True
