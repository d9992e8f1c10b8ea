"""The store contract: inherit StoreContract and say how to open your store, and every promise is tested."""

from quipu.testing.contract import run_as_coroutines
from quipu.testing.contract.calls import CallsContract
from quipu.testing.contract.cluster_relations import ClusterRelationsContract
from quipu.testing.contract.clusters import ClustersContract
from quipu.testing.contract.commits import CommitsContract
from quipu.testing.contract.contents import ContentsContract
from quipu.testing.contract.documents import DocumentsContract
from quipu.testing.contract.dropping import DroppingContract
from quipu.testing.contract.entities import EntitiesContract
from quipu.testing.contract.filters import FiltersContract
from quipu.testing.contract.full_text import FullTextContract
from quipu.testing.contract.jobs import JobsContract
from quipu.testing.contract.laws import LawsContract
from quipu.testing.contract.likenesses import LikenessesContract
from quipu.testing.contract.linking import LinkingContract
from quipu.testing.contract.mentions import MentionsContract
from quipu.testing.contract.numbers import NumbersContract
from quipu.testing.contract.relations import RelationsContract
from quipu.testing.contract.replies import RepliesContract, UsageContract
from quipu.testing.contract.steps import OpenStore
from quipu.testing.contract.summaries import SummariesContract
from quipu.testing.contract.turns import TurnsContract
from quipu.testing.contract.values import ValuesContract
from quipu.testing.contract.vectors import VectorsContract

__all__ = ["OpenStore", "StoreContract"]


@run_as_coroutines
class StoreContract(
    CommitsContract,
    DocumentsContract,
    ContentsContract,
    EntitiesContract,
    RelationsContract,
    MentionsContract,
    LinkingContract,
    NumbersContract,
    FullTextContract,
    FiltersContract,
    VectorsContract,
    JobsContract,
    TurnsContract,
    RepliesContract,
    CallsContract,
    UsageContract,
    ValuesContract,
    SummariesContract,
    ClustersContract,
    ClusterRelationsContract,
    LikenessesContract,
    DroppingContract,
    LawsContract,
):
    """Every promise of `ports/store.py` as a test; needs pytest and pytest-asyncio.

    A subclass named `Test…` brings one fixture, `open_store`, which returns an `OpenStore`: a callable that opens a
    store ready for use. Storages are empty when a test begins.
    """
