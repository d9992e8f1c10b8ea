"""Importing: documents with what another system has read out of them, its communities and its reports."""

from collections.abc import Awaitable, Callable

from quipu.derive.adopting import Adopted, adopt
from quipu.engine.reporting import Run
from quipu.ingest.recorded.publishing import publish_graph
from quipu.model.recording import RecordedGraph
from quipu.model.report import ImportReport, RefreshReport
from quipu.ports.sink import Sink


async def import_recorded(
    graph: RecordedGraph, run: Run, refresh: Callable[[], Awaitable[RefreshReport]], on_event: Sink
) -> ImportReport:
    """Publish the documents, adopt the communities, then bring up to date what is derived."""
    parts = run.parts
    published = await publish_graph(graph, parts.store, parts.recipe, on_event)
    has_changed = published.n_added or published.n_updated
    adopted = Adopted()
    if graph.communities and has_changed:
        adopted = await adopt(parts.bench(on_event), graph.communities, graph.reports)
    return ImportReport(
        n_added=published.n_added,
        n_updated=published.n_updated,
        n_unchanged=published.n_unchanged,
        failed=published.failed,
        n_chunks=published.n_chunks,
        n_communities=adopted.n_communities,
        n_reports=adopted.n_reports,
        unknown=adopted.unknown,
        refreshed=await refresh(),
        seconds=run.seconds,
        usage=parts.models.meter.rows(),
    )
