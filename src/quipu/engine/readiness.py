"""Readiness: whether the models that are about to be asked answer, before any document is touched."""

from quipu.engine.components import Models
from quipu.errors import OverBudget
from quipu.model.document import DocumentStatus
from quipu.ports.ingest import Extractor
from quipu.ports.providers import Embedder
from quipu.ports.store import Store

TO_READ = (DocumentStatus.QUEUED, DocumentStatus.PARSING, DocumentStatus.EXTRACTING)


class Readiness:
    """Checks models once, and only where something is to be read; `notes` tell what a user should look at."""

    def __init__(self, store: Store | None = None, embedder: Embedder | None = None) -> None:
        self._store, self._embedder = store, embedder
        self.notes: tuple[str, ...] = ()
        self._is_checked = False

    async def make_sure(self, models: Models, extractor: Extractor) -> None:
        """Raise Unavailable, with the remedy, where documents cannot be read as things stand.

        Raises Mismatch where their vectors could not stand beside those of the index.

        A budget that is used up by that stops the work, when the documents wait for more; no more is spent on it.
        """
        if self._is_checked:
            return
        if self._store and self._embedder:
            await self._store.use_embedder(self._embedder.identity, self._embedder.dimension)
        try:
            self.notes = await models.check(models.meter)
            await extractor.check()
        except OverBudget:
            if not models.meter.rows():
                raise
        self._is_checked = True

    async def make_sure_of_waiting(self, store: Store, models: Models, extractor: Extractor) -> None:
        """Do the same where documents wait to be read."""
        if self._is_checked:
            return
        async with store.view() as view:
            jobs = (await view.counts()).jobs
        if any(jobs.get(status) for status in TO_READ):
            await self.make_sure(models, extractor)
