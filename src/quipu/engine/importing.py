"""Importing: documents with what another system has read out of them, its communities and its reports."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from quipu.derive.imported_communities import CommunityImportResult, import_communities, is_imported
from quipu.engine.reporting import Run
from quipu.errors import InvalidInput
from quipu.ingest.recorded.publishing import publish_graph
from quipu.model.event import EventSink
from quipu.model.imported_graph import ImportedGraph
from quipu.model.results import ImportResult, RefreshResult


async def import_recorded(
    graph: ImportedGraph,
    run: Run,
    turn: AbstractAsyncContextManager[None],
    refresh: Callable[[], Awaitable[RefreshResult]],
    on_event: EventSink,
) -> ImportResult:
    """Publish the documents, adopt the communities in a `turn` to derive, then bring up to date what is derived.

    Raises InvalidInput for communities without documents where none of their entities is in the index, and
    Mismatch where the vectors there are of another embedder.
    """
    parts = run.parts
    await parts.store.use_embedder(parts.embedder.identity, parts.embedder.dimension)
    published = await publish_graph(graph, parts.store, parts.ingest_config, on_event)
    adopted = CommunityImportResult()
    if graph.communities and not await is_imported(graph, parts.store):
        async with turn:  # what is found of communities meanwhile would take the place of these
            adopted = await import_communities(parts.derivation_context(on_event), graph)
        if not (adopted.n_communities or graph.documents):
            raise InvalidInput(
                f"{graph.communities[0].where}: none of the entities in the communities is in the index.",
                remedy="Import the documents they are of, before or together with them.",
            )
    return ImportResult(
        n_added=published.n_added,
        n_updated=published.n_updated,
        n_unchanged=published.n_unchanged,
        failed=published.failed,
        n_chunks=published.n_chunks,
        n_communities=adopted.n_communities,
        n_reports=adopted.n_reports,
        unknown=adopted.unknown,
        left_out=graph.left_out,
        refreshed=await refresh(),
        seconds=run.seconds,
        usage=parts.models.meter.rows(),
    )
