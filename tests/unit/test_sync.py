"""The blocking twin: the same names and parameters as the engine, and the same answers."""

import inspect
import json
from pathlib import Path

import pytest

from quipu import engine, sync
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.model.usage import Stage
from quipu.testing.scripted.script import Latency, Script
from quipu.testing.server import serving

NAMES = [name for name in vars(engine.Quipu) if not name.startswith("_") and name != "close"]


@pytest.mark.parametrize("name", NAMES)
def test_every_method_of_the_engine_has_its_twin(name: str) -> None:
    twin = inspect.signature(getattr(sync.Quipu, name)).parameters
    assert list(twin) == list(inspect.signature(getattr(engine.Quipu, name)).parameters)


def test_the_twin_has_nothing_of_its_own() -> None:
    assert {name for name in vars(sync.Quipu) if not name.startswith("_")} == set(NAMES)


def test_documents_are_added_and_asked_without_async(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Alice Kober taught classics at Brooklyn College.", id="kober")
        answer = kb.query("Where did Alice Kober teach?")
        assert "Brooklyn College" in answer.text
        assert {json.loads(line)["kind"] for line in kb.dump()} >= {"chunk", "document", "entity"}
        assert kb.verify() == []


def test_a_model_is_asked_streamed_and_counted_without_async(tmp_path: Path) -> None:
    (tmp_path / "kober.md").write_text("Alice Kober taught classics at Brooklyn College.")
    with (
        serving() as server,
        sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb,
    ):
        assert kb.estimate(tmp_path / "kober.md").n_to_read == 1
        assert kb.tune(tmp_path / "kober.md", dry_run=True).cost is not None
        kb.add(tmp_path / "kober.md")
        pieces = list(kb.stream("Where did Alice Kober teach?"))
        assert pieces[-1].answer is not None
        assert "".join(piece.text for piece in pieces) == pieces[-1].answer.text
        assert {row.stage for row in kb.usage()} == {Stage.EXTRACT, Stage.KEYWORDS, Stage.ANSWER}
        assert next(kb.stream("Where did Alice Kober teach?")).text  # the rest is not waited for


def test_a_stream_that_is_not_read_to_its_end_is_closed_with_the_index(tmp_path: Path) -> None:
    slow = Script(latency=Latency(mean_s=0.2, first_share=0.1))
    with serving() as server:
        with sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb:
            kb.add_text("Alice Kober taught classics at Brooklyn College.", id="kober")
            server.configure(slow)
            pieces = kb.stream("Where did Alice Kober teach?")
            assert next(pieces).text
        with pytest.raises(Unavailable, match="has been closed"):
            next(pieces)
        with pytest.raises(Unavailable, match="has been closed"):
            kb.query("Where did Alice Kober teach?")


def test_errors_reach_the_caller(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb, pytest.raises(NotFound, match="no document 'none'"):
        kb.document("none")


def test_a_bad_setting_leaves_no_thread_behind(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput), sync.open(tmp_path / "kb", top_k=0):
        pass
    assert not (tmp_path / "kb").exists()
