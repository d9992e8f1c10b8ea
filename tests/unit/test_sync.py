"""The blocking twin: the same names and parameters as the engine, and the same answers."""

import asyncio
import inspect
import json
import math
import signal
import sys
import threading
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from quipu import engine, sync
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.model.usage import Stage
from quipu.testing.scripted.script import Latency, Script
from quipu.testing.server import serving

NAMES = [name for name in dir(engine.Quipu) if not name.startswith("_")]

UNCLOSED = """
import sys, threading
from quipu import sync

kb = sync.open(sys.argv[1])
kb.add_text("Alice Kober taught classics at Brooklyn College.", id="kober")
kb = sync.open(sys.argv[1])
print(kb.query("Where did Alice Kober teach?").text)
loops = [thread for thread in threading.enumerate() if thread.name == "quipu.sync"]
loops[0].join(10)
print(sum(loop.is_alive() for loop in loops))
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_method_of_the_engine_has_its_twin(name: str) -> None:
    twin = inspect.signature(getattr(sync.BlockingQuipu, name)).parameters
    assert list(twin) == list(inspect.signature(getattr(engine.Quipu, name)).parameters)


def test_the_twin_has_nothing_of_its_own() -> None:
    assert {name for name in vars(sync.BlockingQuipu) if not name.startswith("_")} == set(NAMES)


def test_documents_are_added_and_asked_without_async(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Alice Kober taught classics at Brooklyn College.", id="kober")
        answer = kb.query("Where did Alice Kober teach?")
        assert "Brooklyn College" in answer.text
        assert {json.loads(line)["kind"] for line in kb.dump()} >= {"chunk", "document", "entity"}
        assert kb.verify() == []


def test_conversations_are_continued_without_async(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Alice Kober taught Latin in Brooklyn.", id="kober")
        first = kb.conversations.ask("What did Alice Kober teach?")
        assert kb.conversations.ask("And where?", first.conversation).number == 2
        assert [row.n_exchanges for row in kb.conversations.page().conversations] == [2]
        kb.conversations.delete(first.conversation)
        assert kb.conversations.page().conversations == ()


def test_a_model_is_asked_streamed_and_counted_without_async(tmp_path: Path) -> None:
    (tmp_path / "kober.md").write_text("Alice Kober taught classics at Brooklyn College.")
    with (
        serving() as server,
        sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb,
    ):
        assert kb.estimate(tmp_path / "kober.md").n_to_read == 1
        assert kb.tune(tmp_path / "kober.md", dry_run=True).cost is not None
        kb.add(tmp_path / "kober.md")
        pieces = list(kb.stream("Where did Alice Kober teach?", strategy="mix"))
        assert pieces[-1].answer is not None
        assert "".join(piece.text for piece in pieces) == pieces[-1].answer.text
        assert {row.stage for row in kb.usage()} == {Stage.EXTRACT, Stage.KEYWORDS, Stage.ANSWER}
        unread = kb.stream("Where did Alice Kober teach?")
        assert next(piece.text for piece in unread if piece.text)  # the rest is not waited for


def test_a_stream_that_is_not_read_to_its_end_is_closed_with_the_index(tmp_path: Path) -> None:
    slow = Script(latency=Latency(mean_s=0.2, first_share=0.1))
    with serving() as server:
        with sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb:
            kb.add_text("Alice Kober taught classics at Brooklyn College.", id="kober")
            server.configure(slow)
            pieces = kb.stream("Where did Alice Kober teach?")
            assert next(piece.text for piece in pieces if piece.text)
        with pytest.raises(Unavailable, match="has been closed"):
            next(pieces)
        with pytest.raises(Unavailable, match="has been closed"):
            kb.query("Where did Alice Kober teach?")


def test_an_index_may_be_used_without_a_with_block(tmp_path: Path) -> None:
    kb = sync.open(tmp_path / "kb")
    kb.add_text("Alice Kober taught classics at Brooklyn College.", id="kober")
    assert "Brooklyn College" in kb.query("Where did Alice Kober teach?").text
    kb.close()
    kb.close()
    with pytest.raises(Unavailable, match="closed"):
        kb.status()


def test_an_index_that_is_never_closed_neither_holds_up_the_exit_nor_leaves_its_thread(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNCLOSED, str(tmp_path / "kb")]
    process = run(command, check=False, capture_output=True, text=True, timeout=120)
    answer, n_alive = process.stdout.splitlines()
    assert (process.returncode, process.stderr, n_alive) == (0, "", "1")
    assert "Brooklyn College" in answer


def test_errors_reach_the_caller(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb, pytest.raises(NotFound, match="no document 'none'"):
        kb.document("none")


@pytest.mark.skipif(sys.platform == "win32", reason="signals one thread")
def test_an_interrupted_call_does_not_wait_for_the_calls_of_other_threads() -> None:
    loop = sync._BackgroundLoop()
    has_begun, may_end, has_ended = threading.Event(), threading.Event(), threading.Event()

    async def call_of_another_thread() -> None:
        has_begun.set()
        await asyncio.to_thread(may_end.wait, 5)
        has_ended.set()

    async def interrupted_call() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        await asyncio.Event().wait()

    thread = threading.Thread(target=lambda: loop.run(call_of_another_thread()))
    thread.start()
    assert has_begun.wait(10)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run(interrupted_call())
        assert not has_ended.is_set()
    finally:
        signal.signal(signal.SIGINT, handler)
        may_end.set()
        thread.join()
        loop.stop()


def test_a_bad_setting_leaves_no_thread_behind(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput), sync.open(tmp_path / "kb", top_k=0):
        pass
    assert not (tmp_path / "kb").exists()


def test_a_single_name_is_no_list_of_letters_and_a_list_of_paths_is_many(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("kober.md", "ventris.md")]
    for file in files:
        file.write_text(f"{file.stem.title()} read Linear B in Athens.")
    with sync.open(tmp_path / "kb") as kb:
        assert kb.add(files).n_added == 2  # type: ignore[arg-type]
        assert [each.name for each in kb.refresh("communities").derivations] == ["communities"]
        assert {each.name for each in kb.plan("names")} >= {"names"}
        assert [each.strategy for each in kb.compare("Who read Linear B?", "lexical").results] == ["lexical"]
        assert kb.drop("communities") == ("communities",)
        with pytest.raises(InvalidInput, match=r"5 is not a document\."):
            kb.add(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="a list of strings, not None"):
            kb.remove(None)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="rank = 'one' is not a whole number"):
            kb.explain("Who read Linear B?", rank="one")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"top_k": "7"}, "top_k = '7'"),
        ({"top_k": 1.5}, "top_k = 1.5"),
        ({"top_k": True}, "top_k = True"),
        ({"strategy": 5}, "strategy = 5"),
        ({"filter": "region=1"}, "filter = 'region=1'.*quipu.Filter"),
        ({"filter": {}}, "filter = {}"),
        ({"history": [{"role": "user"}]}, "history = .*quipu.Turn"),
        ({"budget": 5}, "budget = 5 .*quipu.Budget"),
        ({"min_similarity": math.nan}, "min_similarity = nan"),
        ({"min_similarity": 5}, "min_similarity = 5"),
        ({"topk": 5}, "'topk'.*Did you mean top_k"),
    ],
)
def test_an_option_that_is_no_value_of_its_kind_is_refused(tmp_path: Path, options: dict[str, Any], named: str) -> None:
    with sync.open(tmp_path / "kb") as kb:
        with pytest.raises(InvalidInput, match=named) as caught:
            kb.query("What?", **options)
        assert "__init__" not in str(caught.value)


def test_what_is_no_question_no_text_and_no_metadata_is_refused(tmp_path: Path) -> None:
    with sync.open(tmp_path / "kb") as kb:
        with pytest.raises(InvalidInput, match="None is no question"):
            kb.query(None)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="topk"):
            kb.query("What?", topk=3)  # type: ignore[call-arg] # mypy fails where this is no error
        with pytest.raises(InvalidInput, match="top_k"):
            kb.retrieve("What?", top_k="three")  # type: ignore[arg-type] # and here
        refused: tuple[tuple[Any, dict[str, Any], str], ...] = (
            (5, {}, "takes a text, not 5"),
            ("A text.", {"id": 5}, "5 cannot be the id"),
            ("A text.", {"metadata": {"a": object()}}, "'a' = <object"),
            ("A text.", {"metadata": ["a"]}, "is not metadata"),
        )
        for text, options, named in refused:
            with pytest.raises(InvalidInput, match=named):
                kb.add_text(text, **options)
        with pytest.raises(InvalidInput, match="is not metadata"):
            kb.add(tmp_path, metadata="a=1")  # type: ignore[arg-type]
        assert kb.documents() == []
