"""Reporting: what a run of work on documents did, in one report."""

import time
from collections.abc import Sequence

from quipu.engine.components import Components
from quipu.ingest.pipeline import PipelineResult
from quipu.ingest.queue import EnqueueResult
from quipu.model.document import Document, DocumentStatus
from quipu.model.results import AddResult, RefreshResult
from quipu.ports.store import IndexCounts


class Run:
    """One run of work, from its beginning on: how long it takes and what it costs. `parts` count for it."""

    def __init__(self, parts: Components) -> None:
        self.parts = parts.metered_by(parts.models.meter.child(""))
        self._begun = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long it has taken by now."""
        return time.perf_counter() - self._begun

    def report(
        self,
        taken: EnqueueResult,
        work: PipelineResult,
        refreshed: RefreshResult,
        *,
        finished: Sequence[Document],
        counts: IndexCounts,
        notes: Sequence[str] = (),
    ) -> AddResult:
        """Return what happened to the documents handed in, and to those that had been waiting."""
        handed_in = {*taken.added, *taken.updated}
        well = {
            document.id for document in finished if document.status in (DocumentStatus.READY, DocumentStatus.PARTIAL)
        }
        unreadable = [
            Document(id=bad.id, title="", status=DocumentStatus.FAILED, source=bad.source, error=str(bad.error))
            for bad in taken.unreadable
        ]
        failed = [document for document in finished if document.status is DocumentStatus.FAILED]
        return AddResult(
            n_added=len(well.intersection(taken.added)),
            n_updated=len(well.intersection(taken.updated)),
            n_unchanged=len(taken.unchanged),
            n_resumed=len(well - handed_in),
            failed=(*unreadable, *failed),
            partial=tuple(document for document in finished if document.status is DocumentStatus.PARTIAL),
            n_chunks=work.n_chunks,
            n_extracted=work.n_extracted,
            n_reused=work.n_reused,
            n_dropped=work.n_dropped,
            n_removed=work.n_removed,
            n_embedded=refreshed.n_embedded,
            n_summarised=refreshed.n_summarised,
            unsummarised=refreshed.unsummarised,
            skipped=tuple(taken.skipped.n_by_suffix.items()) if taken.skipped else (),
            extractor=self.parts.ingest_config.extractor.description,
            seconds=self.seconds,
            stopped=str(work.stopped or refreshed.stopped or ""),
            n_waiting=sum(
                n for status, n in counts.jobs.items() if status not in (DocumentStatus.FAILED, DocumentStatus.PARTIAL)
            ),
            usage=self.parts.models.meter.rows(),
            notes=tuple(notes),
            n_read_otherwise=taken.n_by_other_reader.total(),
            read_otherwise_by=tuple(sorted(taken.n_by_other_reader)),
            readers=tuple(counts.readers.items()),
            derivations=refreshed.derivations,
        )
