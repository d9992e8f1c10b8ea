"""Tests of refreshing: what was done before a stop is told."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import OverBudget, Overloaded, QuipuError, Unavailable
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM
from tests.laws.model_world import script, scripted_engine, travels


class Ending(ScriptedEmbedder):
    """An embedder that ends with an error at its second call."""

    def __init__(self, error: QuipuError) -> None:
        super().__init__()
        self.error: QuipuError | None = error
        self.n_failed = 0

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text, or raise."""
        if self.n_calls and self.error:
            self.n_failed += 1
            raise self.error
        return await super().embed(texts)


async def test_vectors_computed_while_something_is_derived_are_counted(tmp_path: Path) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(*(travels(f"n{n}.md") for n in range(3)))
        before = (await kb.status()).n_vectors
        report = await kb.refresh(["names", "sentences", "hierarchy"])
        assert report.n_embedded == (await kb.status()).n_vectors - before > 0


@pytest.mark.parametrize("error", [OverBudget("All is spent."), Overloaded("Too busy."), Unavailable("It is gone.")])
async def test_vectors_that_were_kept_before_a_stop_are_counted(tmp_path: Path, error: QuipuError) -> None:
    embedder = Ending(error)
    async with scripted_engine(tmp_path, ScriptedLLM(script()), embedder=embedder) as kb:
        report = await kb.add(*(travels(f"n{n}.md") for n in range(80)))
        n_kept = (await kb.status()).n_vectors
        assert (report.stopped, report.n_embedded) == (str(error), n_kept)
        assert n_kept > 0
        embedder.error = None
        rest = await kb.refresh()
        assert (rest.stopped, rest.n_embedded) == ("", (await kb.status()).n_vectors - n_kept)


async def test_an_embedder_that_is_gone_is_asked_once_a_run(tmp_path: Path) -> None:
    embedder = Ending(Unavailable("It is gone."))
    async with scripted_engine(tmp_path, ScriptedLLM(script()), embedder=embedder) as kb:
        embedder.error = None
        await kb.add(*(travels(f"n{n}.md") for n in range(3)))
        await kb.refresh(["names", "communities"])
        embedder.error, n_before = Unavailable("It is gone."), embedder.n_failed
        report = await kb.add(travels("later.md"))
        assert report.stopped == "It is gone."
        assert embedder.n_failed - n_before == 1
