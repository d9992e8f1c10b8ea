"""Law 4 for questions: whatever a model's server does, an answer comes, or the error that is documented."""

import asyncio
import sys
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import Overloaded, QuipuError, Refused, Unavailable
from quipu.model.answer import Answer
from quipu.testing.scripted.script import Fault, FaultName, RequestKind
from quipu.testing.server.process import ServerHandle
from tests.laws.model_counts import asked_again, differences
from tests.laws.model_faults import HANGING, begin, cases
from tests.laws.model_world import LONG_S, SHORT_S, model_engine, model_settings, script, travels

KINDS = (RequestKind.KEYWORDS, RequestKind.EMBED, RequestKind.RERANK, RequestKind.ANSWER)


async def check_question(kb: Quipu, server: ServerHandle, fault: Fault, question: str) -> None:
    """Ask while a fault strikes and when it has stopped: an answer comes, or the error that is documented."""
    strategy = "mix" if RequestKind.KEYWORDS in fault.kinds else "naive"
    await asyncio.to_thread(begin, server, fault)
    is_well = False
    try:
        answer = await kb.query(question, strategy=strategy, min_similarity=-1.0)
    except QuipuError as error:
        assert RequestKind.EMBED in fault.kinds, f"{fault.name}: {error}"
        assert isinstance(error, Overloaded | Unavailable | Refused) and error.message
    else:
        assert answer.text
        assert is_models(answer) or any(note.startswith("Quoted, as the model") for note in answer.notes), fault
        is_well = is_models(answer) and not answer.notes and bool(fault.attempts)
    served = (await asyncio.to_thread(server.settled)).requests
    rows = [row for row in await kb.usage() if row.subject == question]
    assert (fault.name, differences(rows, served), asked_again(served)) == (fault.name, [], [])
    if is_well:
        return
    await asyncio.to_thread(server.configure, script())
    answer = await kb.query(question, strategy=strategy, min_similarity=-1.0)
    assert is_models(answer) and answer.text, fault
    assert asked_again((await asyncio.to_thread(server.settled)).requests) == []


def is_models(answer: Answer) -> bool:
    """Say whether a model wrote the answer."""
    return answer.generator.endswith("/scripted")


async def test_whatever_strikes_a_question_is_answered_or_told(
    server: ServerHandle, laws_scale: int, tmp_path: Path
) -> None:
    await asyncio.to_thread(begin, server)
    reranker = {"reranker": "custom/words", "reranker_base_url": server.base_url}
    tried = [(kind, case) for kind in KINDS for case in cases(kind, laws_scale)]
    for timeout_s, hangs in ((LONG_S, False), (SHORT_S, True)):
        settings = model_settings(tmp_path / "kb", server.base_url, llm_timeout_s=timeout_s, **reranker)
        async with model_engine(settings) as kb:
            await kb.add(travels("a.md", n_sentences=1))
            for kind, case in (each for each in tried if (each[1].name in HANGING) == hangs):
                await check_question(kb, server, case.fault(kind), f"Who read the book of A? ({kind}, {case})")


@pytest.mark.parametrize(
    ("place", "name"), [("quipu.answer.written_answer", "_MODEL_FAILURES"), ("quipu.retrieve.question", "QuipuError")]
)
async def test_the_law_fails_where_it_is_broken(
    place: str, name: str, server: ServerHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [Fault(name=FaultName.BAD_REQUEST, kinds=(kind,)) for kind in (RequestKind.KEYWORDS, RequestKind.ANSWER)]
    await asyncio.to_thread(begin, server)
    async with model_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
        await kb.add(travels("a.md"))
        for fault in faults:
            await check_question(kb, server, fault, f"Who read the book of A? ({fault.kinds})")
        monkeypatch.setattr(sys.modules[place], name, ())  # so that no error is caught there
        with pytest.raises(AssertionError):
            for fault in faults:
                await check_question(kb, server, fault, f"Who read the book of A? (again {fault.kinds})")
