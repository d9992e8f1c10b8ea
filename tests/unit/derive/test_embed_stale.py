"""Tests of vectors brought up to date: what is computed is committed, whatever comes after."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from quipu.derive.derivation import TEXTS_PER_CALL, embed_stale
from quipu.errors import Overloaded
from quipu.model.delta import Delta
from quipu.model.event import ignore_event
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.facts import document, entity, passage
from tests.unit.wrap.fakes import FakeEmbedder

N = 2 * TEXTS_PER_CALL


class Ending(FakeEmbedder):
    """An embedder that ends with an error after `n_calls`."""

    error: BaseException = Overloaded("Too busy.")
    n_calls = 1

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text, or raise."""
        if len(self.asked) == self.n_calls:
            raise self.error
        return await super().embed(texts)


@pytest.mark.parametrize("error", [Overloaded("Too busy."), asyncio.CancelledError()])
async def test_what_was_embedded_before_a_failure_is_kept(tmp_path: Path, error: BaseException) -> None:
    store = RelationalStore(SqliteBackend(tmp_path / "index.sqlite", busy_timeout_s=5), lease_s=60)
    await store.prepare()
    embedder = Ending()
    embedder.error = error
    await store.set_embedder(embedder.identity, embedder.dimension)
    passages = [passage(f"Passage {number}.", entity(f"Name {number}")) for number in range(N)]
    await store.commit(Delta(publish=[document("a", *passages)]))
    n_stale = len(await store.texts_without_vector(embedder.identity, 10 * N))
    with pytest.raises(type(error)):
        await embed_stale(store, embedder, ignore_event)
    assert len(await store.texts_without_vector(embedder.identity, 10 * N)) == n_stale - TEXTS_PER_CALL
    embedder.n_calls = -1
    assert await embed_stale(store, embedder, ignore_event) == n_stale - TEXTS_PER_CALL
    await store.close()
