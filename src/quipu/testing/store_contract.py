"""The store contract: inherit StoreContract and say how to open your store, and every promise is tested."""

from quipu.testing.contract import run_as_coroutines
from quipu.testing.contract.calls import Calls
from quipu.testing.contract.cluster_relations import ClusterRelations
from quipu.testing.contract.clusters import Clusters
from quipu.testing.contract.commits import Commits
from quipu.testing.contract.documents import Documents
from quipu.testing.contract.dropping import Dropping
from quipu.testing.contract.entities import Entities
from quipu.testing.contract.filters import Filters
from quipu.testing.contract.full_text import FullText
from quipu.testing.contract.jobs import Jobs
from quipu.testing.contract.laws import Laws
from quipu.testing.contract.likenesses import Likenesses
from quipu.testing.contract.linking import Linking
from quipu.testing.contract.mentions import Mentions
from quipu.testing.contract.numbers import Numbers
from quipu.testing.contract.relations import Relations
from quipu.testing.contract.replies import Replies
from quipu.testing.contract.steps import OpenStore
from quipu.testing.contract.summaries import Summaries
from quipu.testing.contract.turns import Turns
from quipu.testing.contract.usage import Usage
from quipu.testing.contract.vectors import Vectors

__all__ = ["OpenStore", "StoreContract"]


@run_as_coroutines
class StoreContract(
    Commits,
    Documents,
    Entities,
    Relations,
    Mentions,
    Linking,
    Numbers,
    FullText,
    Filters,
    Vectors,
    Jobs,
    Turns,
    Replies,
    Calls,
    Usage,
    Summaries,
    Clusters,
    ClusterRelations,
    Likenesses,
    Dropping,
    Laws,
):
    """Every promise of `ports/store.py` as a test; needs pytest and pytest-asyncio.

    A subclass named `Test…` brings one fixture, `open_store`, which returns an `OpenStore`: a callable that opens a
    store ready for use. Storages are empty when a test begins.
    """
