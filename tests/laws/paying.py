"""An embedder that is paid by the text, engines that ask it, and a place where two of them meet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quipu.engine import Quipu
from quipu.engine.components import Models
from quipu.wrap.chain import EmbedderChain
from quipu.wrap.meter import ModelPricing
from tests.laws.world import INGEST_CONFIG, engine

LOCAL = INGEST_CONFIG.embedder


@dataclass(slots=True, kw_only=True)
class Meeting:
    """Where two meet: one is held at its call `held_at` until it is `released`; `paid` are the texts of all calls."""

    held_at: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    paid: list[str] = field(default_factory=list)


class PaidEmbedder:
    """The local embedder, counted; where it belongs to the first of a meeting it is held there, else it releases it."""

    def __init__(self, meeting: Meeting, *, is_first: bool = False, identity: str = LOCAL.identity) -> None:
        self.identity, self.dimension = identity, LOCAL.dimension
        self._meeting, self._is_first, self._n_calls = meeting, is_first, 0

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector a text, when the time has come."""
        meeting = self._meeting
        meeting.paid += dict.fromkeys(texts)  # a service is asked for equal texts once
        if not self._is_first:
            meeting.released.set()
        elif self._n_calls == meeting.held_at:
            meeting.begun.set()
            await meeting.released.wait()
        self._n_calls += 1
        return await LOCAL.embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors to look for, which nobody counts."""
        return await LOCAL.embed_queries(texts)


async def unpaid(_rows: object) -> None:
    """Keep nothing of what calls cost."""


@asynccontextmanager
async def paying_engine(folder: Path, provider: PaidEmbedder) -> AsyncIterator[Quipu]:
    """Open an engine whose embedder is a service, and that has no other model."""
    async with engine(folder) as kb:
        chain = EmbedderChain(
            provider=provider,
            pricing=ModelPricing(model=provider.identity, price=None, count_tokens=len),
            save_usage=unpaid,
        )
        models = Models(embedder_chain=chain)
        embedder = models.embedder(provider, models.meter)
        ingest_config = replace(kb._components.ingest_config, embedder=embedder)
        yield Quipu(replace(kb._components, embedder=embedder, ingest_config=ingest_config, models=models))
