"""The engine with models: what is estimated, what a budget stops, what is counted, and what an answer asks for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import InvalidInput, OverBudget, Unavailable
from quipu.model.chat import Role
from quipu.model.document import DocumentStatus
from quipu.model.event import Event, Progress, Spending
from quipu.model.usage import Price, Stage, total
from quipu.settings import Settings, SettingValue
from quipu.settings.tables import ModelPrice, RoleSettings
from quipu.testing.scripted.script import Fault, FaultName, RequestKind, Script
from quipu.testing.server import serving
from quipu.testing.server.process import ServerHandle
from quipu.wiring import open_engine
from quipu.wrap.guard import RetryPolicy

TEXTS = {
    "polo": "Marco Polo was a merchant of Venice. Marco Polo met Kublai Khan in Shangdu in 1275.",
    "khan": "Kublai Khan founded the Yuan dynasty. Kublai Khan was a grandson of Genghis Khan.",
    "kober": "Alice Kober taught classics at Brooklyn College. Alice Kober studied Linear B.",
}
PRICE = ModelPrice(model="custom/*", price=Price(input=1.0, output=2.0))
NOWHERE = "http://127.0.0.1:9/v1"
AT_ONCE = RetryPolicy(max_attempts=1, first_wait_s=0.0, max_wait_s=0.0)


def _settings(folder: Path, base_url: str, **values: SettingValue | tuple[object, ...]) -> Settings:
    return Settings(index=folder / "kb", llm="custom/test", llm_base_url=base_url, **values)  # type: ignore[arg-type]


async def _texts(folder: Path) -> Path:
    texts = folder / "texts"
    texts.mkdir()
    for name, text in TEXTS.items():
        (texts / f"{name}.md").write_text(text)
    return texts


@pytest.fixture
async def kb(tmp_path: Path, server: ServerHandle) -> AsyncIterator[Quipu]:
    """An open index with the texts added, and nothing counted at the server."""
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as engine:
        await engine.add(await _texts(tmp_path), root=tmp_path)
        server.reset()
        yield engine


# ---- estimates


async def test_an_estimate_asks_no_model_and_adds_nothing(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as kb:
        told = await kb.estimate(await _texts(tmp_path), root=tmp_path)
        assert (told.n_documents, told.n_chunks, told.n_to_read, told.model) == (3, 3, 3, "custom/test")
        assert 0 < told.calls.low <= told.calls.likely <= told.calls.high
        assert told.cost is not None and 0 < told.cost.low <= told.cost.high
        assert told.basis.startswith("typical figures")
        assert await kb.documents() == []
    assert server.stats().requests == ()


async def test_a_sample_is_paid_for_kept_and_known_afterwards(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as kb:
        texts = await _texts(tmp_path)
        told = await kb.estimate(texts, root=tmp_path, n_sample=2)
        assert (told.n_cached, told.n_to_read) == (2, 1)
        assert told.sample_calls > 0
        assert told.sample_cost > 0
        assert await kb.documents() == []
        assert await kb.verify() == []
        read = server.stats().by_kind[RequestKind.EXTRACT].n_completed
        report = await kb.add(texts, root=tmp_path)
        assert (report.n_extracted, report.n_reused) == (1, 2)
        assert server.stats().by_kind[RequestKind.EXTRACT].n_completed == read + 2  # the check, and the one that is new


async def test_a_sample_that_cannot_be_read_is_told_and_is_not_known_afterwards(
    tmp_path: Path, server: ServerHandle
) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as kb:
        texts = await _texts(tmp_path)
        server.configure(
            Script(faults=(Fault(name=FaultName.EMPTY, kinds=(RequestKind.EXTRACT,), containing="Kublai"),))
        )
        told = await kb.estimate(texts, root=tmp_path, n_sample=3)
    assert (told.n_sampled, told.n_sample_failed, told.n_cached, told.n_to_read) == (3, 2, 1, 2)
    assert "named nothing" in told.sample_error


async def test_a_sample_larger_than_what_is_to_be_read_reads_all_of_it(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url)) as kb:
        told = await kb.estimate(await _texts(tmp_path), root=tmp_path, n_sample=1_000)
        assert (told.n_cached, told.n_to_read, told.calls.high) == (3, 0, 0)
        assert told.cost is None


async def test_an_index_that_has_read_something_is_the_measure(kb: Quipu, tmp_path: Path, server: ServerHandle) -> None:
    (tmp_path / "new.md").write_text("Ibn Battuta was born in Tangier.")
    told = await kb.estimate(tmp_path / "new.md", root=tmp_path)
    assert told.basis == "what reading 3 chunks of this index cost"
    assert server.stats().requests == ()


async def test_without_a_model_an_estimate_names_none(tmp_path: Path) -> None:
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        told = await kb.estimate(await _texts(tmp_path), root=tmp_path, n_sample=5)
        assert (told.model, told.sample_calls, told.n_to_read) == ("", 0, 3)


# ---- budgets


async def test_a_budget_ends_the_work_with_a_report_and_more_goes_on(tmp_path: Path, server: ServerHandle) -> None:
    texts = await _texts(tmp_path)
    async with await open_engine(_settings(tmp_path, server.base_url, budget="3 calls")) as kb:
        report = await kb.add(texts, root=tmp_path)
        assert "The budget of 3 calls is used up." in report.stopped
        assert report.n_waiting > 0
        assert report.n_added + report.n_waiting == 3
        assert total(report.usage).n_calls <= 3
        n_read = server.stats().by_kind[RequestKind.EXTRACT].n_completed
    async with await open_engine(_settings(tmp_path, server.base_url)) as kb:
        report = await kb.resume()
        assert (report.stopped, report.n_waiting) == ("", 0)
        assert {document.status for document in await kb.documents()} == {DocumentStatus.READY}
        assert await kb.verify() == []
    asked = [each.key for each in server.stats().requests if each.kind is RequestKind.EXTRACT]
    assert len(asked) > n_read
    assert len(asked) - len(set(asked)) <= 1  # only the check of the model is asked by each process


async def test_a_question_over_its_own_limit_is_answered_by_quotes_or_refused(
    tmp_path: Path, server: ServerHandle, kb: Quipu
) -> None:
    question = "Who founded the Yuan dynasty?"
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as limited:
        answer = await limited.query(question, max_cost=0.000_001)
        assert (answer.generator, answer.usage) == ("extractive", ())
        assert "The budget of 0.000001 USD does not allow another call" in answer.notes[0]
        with pytest.raises(OverBudget, match=r"0\.000001 USD .*, and the next call may take"):
            await limited.query(question, max_cost=0.000_001, may_fall_back=False)
        with pytest.raises(OverBudget):
            async for _ in limited.stream(question, max_cost=0.000_001, may_fall_back=False):
                pass
        assert (await limited.query(question, max_cost=1.0)).generator != "extractive"
        assert (await limited.query(question + " ")).generator != "extractive"  # others have no such limit


async def test_the_limit_of_a_question_holds_within_the_budget_of_the_index(
    tmp_path: Path, server: ServerHandle, kb: Quipu
) -> None:
    settings = _settings(tmp_path, server.base_url, price=(PRICE,), budget="0.000001")
    async with await open_engine(settings) as poor:
        with pytest.raises(OverBudget, match=r"The budget of 0\.000001 USD"):
            await poor.query("Who founded the Yuan dynasty?", max_cost=5.0, may_fall_back=False)


async def test_strategies_that_are_compared_share_one_limit(tmp_path: Path, server: ServerHandle, kb: Quipu) -> None:
    question, one_answer = "Who was Marco Polo?", 0.0053  # more than one answer may take, and less than two
    names = ("ppr", "lexical")
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as limited:
        alone = [await limited.query(f"{question} ({name})", strategy=name, max_cost=one_answer) for name in names]
        assert "extractive" not in [answer.generator for answer in alone]
        rows = (await limited.compare(question, names, max_cost=one_answer)).results
    assert len({row.answer.prompt for row in rows if row.answer}) == len(names)
    assert [row.answer.generator for row in rows if row.answer].count("extractive") == 1


async def test_what_a_limit_of_one_add_stops_another_call_finishes(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as kb:
        report = await kb.add(await _texts(tmp_path), root=tmp_path, max_cost=0.01)
        assert "The budget of 0.01 USD does not allow another call" in report.stopped
        assert report.n_waiting > 0
        assert 0 < total(report.usage).cost <= 10_000
        report = await kb.resume()
        assert (report.stopped, report.n_waiting) == ("", 0)
        with pytest.raises(InvalidInput, match="max_cost = -1"):
            await kb.resume(max_cost=-1)


async def test_events_name_the_document_and_tell_what_the_call_has_spent(tmp_path: Path, server: ServerHandle) -> None:
    events: list[Event] = []
    async with await open_engine(_settings(tmp_path, server.base_url, price=(PRICE,))) as kb:
        await kb.query("Who founded the Yuan dynasty?")  # counted by the index, but not by the add
        report = await kb.add(await _texts(tmp_path), root=tmp_path, on_event=events.append)
        documents = {document.id for document in await kb.documents()}
    read = [event for event in events if isinstance(event, Progress) and event.stage == "extract"]
    assert {event.document_id for event in read} == documents
    costs = [event.spent.cost for event in events]
    assert costs == sorted(costs) and costs[0] < costs[-1]
    usage = total(report.usage)
    assert events[-1].spent == Spending(
        n_calls=usage.n_calls, n_tokens=usage.tokens.input + usage.tokens.output, cost=usage.cost
    )


async def test_a_question_over_the_budget_is_answered_by_quotes_that_say_why(
    tmp_path: Path, server: ServerHandle, kb: Quipu
) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url, budget="1 call")) as poor:
        answer = await poor.query("Who founded the Yuan dynasty?", strategy="mix")
        assert (answer.generator, total(answer.usage).n_calls) == ("extractive", 1)
        assert "The budget of 1 call is used up" in answer.notes[0]
        with pytest.raises(OverBudget, match="The budget of 1 call is used up"):
            await poor.query("Who founded the Yuan dynasty?", strategy="mix", may_fall_back=False)


# ---- what is counted, by whom


async def test_usage_is_that_of_the_server_by_document_and_question(kb: Quipu, server: ServerHandle) -> None:
    answer = await kb.query("Who founded the Yuan dynasty?", strategy="mix")
    served = server.stats()
    assert total(answer.usage).tokens == served.total().tokens
    assert {row.stage for row in answer.usage} == {Stage.KEYWORDS, Stage.ANSWER}
    rows = await kb.usage()
    assert {"texts/polo.md", "texts/khan.md", "Who founded the Yuan dynasty?"} <= {row.subject for row in rows}
    assert all(row.cost == PRICE.price.cost(row.tokens) for row in rows if row.n_calls == 1)
    assert await kb.usage(since="2999-01-01") == []


async def test_a_stream_gives_the_text_in_pieces_and_the_answer_last(kb: Quipu) -> None:
    pieces = [piece async for piece in kb.stream("Who founded the Yuan dynasty?")]
    assert pieces[-1].answer is not None
    assert "".join(piece.text for piece in pieces) == pieces[-1].answer.text
    assert len(pieces) > 2


async def test_without_an_answer_only_the_keywords_are_asked_for(kb: Quipu, server: ServerHandle) -> None:
    answer = await kb.query("Who founded the Yuan dynasty?", strategy="mix", with_answer=False)
    assert "Yuan" in answer.context and "Yuan" in answer.prompt
    assert [each.kind for each in server.stats().requests] == [RequestKind.KEYWORDS]
    assert (answer.text, answer.citations) == ("", ())  # nor was a quote chosen, which takes longer than the search


async def test_the_status_names_the_models_by_role_and_the_currency(tmp_path: Path, server: ServerHandle) -> None:
    answers = RoleSettings(role=Role.ANSWER, llm="custom/large", llm_base_url=server.base_url)
    async with await open_engine(_settings(tmp_path, server.base_url, role=(answers,), currency="EUR")) as kb:
        status = await kb.status()
    assert status.currency == "EUR"
    models = dict(status.models)
    assert set(models) == {role.value for role in Role if role is not Role.VISION}
    assert (models["answer"] != models["extract"], models["judge"]) == (True, models["extract"])


# ---- what cannot work is said before anything is touched


async def test_a_server_that_is_not_there_is_told_of_before_a_document_is_touched(tmp_path: Path) -> None:
    async with await open_engine(_settings(tmp_path, NOWHERE)) as kb:
        with pytest.raises(Unavailable, match=r"Nothing answers at 127\.0\.0\.1:9"):
            await kb.add(await _texts(tmp_path), root=tmp_path)
        assert await kb.documents() == []


async def test_passages_are_put_in_order_by_a_reranker_which_is_counted(tmp_path: Path, server: ServerHandle) -> None:
    settings = Settings(index=tmp_path / "kb", reranker="jina/small", reranker_base_url=server.base_url)
    async with await open_engine(settings) as kb:
        await kb.add(await _texts(tmp_path), root=tmp_path)
        answer = await kb.query("Who founded the Yuan dynasty?", strategy="naive", min_similarity=-1.0)
        assert "scores it" in answer.trace.evidence.chunks[0].reason
        assert [row.stage for row in answer.usage] == [Stage.RERANK]
        assert [row.stage for row in await kb.usage()] == [Stage.RERANK]


async def test_what_is_unchanged_needs_no_model(tmp_path: Path) -> None:
    texts = await _texts(tmp_path)
    with serving() as server:
        settings = _settings(tmp_path, server.base_url)
        async with await open_engine(settings) as kb:
            await kb.add(texts, root=tmp_path)
    async with await open_engine(settings, retry=AT_ONCE) as kb:
        report = await kb.add(texts, root=tmp_path)
        assert (report.n_unchanged, report.usage) == (3, ())
        assert (await kb.resume()).n_resumed == 0
        (texts / "new.md").write_text("Ibn Battuta was born in Tangier.")
        with pytest.raises(Unavailable, match="Nothing answers"):
            await kb.add(texts, root=tmp_path)
        assert len(await kb.documents()) == 3


async def test_what_waits_is_not_touched_where_no_model_answers(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url, budget="2 calls")) as kb:
        assert (await kb.add(await _texts(tmp_path), root=tmp_path)).n_waiting > 0
    async with await open_engine(_settings(tmp_path, NOWHERE)) as kb:
        with pytest.raises(Unavailable, match="Nothing answers"):
            await kb.resume()
        assert DocumentStatus.FAILED not in {document.status for document in await kb.documents()}


async def test_the_model_of_summaries_is_asked_before_anything_is_read(tmp_path: Path, server: ServerHandle) -> None:
    summaries = RoleSettings(role=Role.SUMMARISE, llm="custom/other", llm_base_url=NOWHERE)
    async with await open_engine(_settings(tmp_path, server.base_url, role=(summaries,))) as kb:
        with pytest.raises(Unavailable, match=r"Nothing answers at 127\.0\.0\.1:9"):
            await kb.add(await _texts(tmp_path), root=tmp_path)
        assert await kb.documents() == []
    assert server.stats().total(RequestKind.EXTRACT).n_completed == 0


async def test_a_model_that_reads_and_sums_up_is_asked_once(tmp_path: Path, server: ServerHandle) -> None:
    async with await open_engine(_settings(tmp_path, server.base_url)) as kb:
        await kb.add(await _texts(tmp_path), root=tmp_path)
    assert server.stats().total(RequestKind.OTHER).n_completed == 1


async def test_a_model_that_cannot_be_asked_is_told_of_though_its_fallback_answers(
    tmp_path: Path, server: ServerHandle
) -> None:
    reads = RoleSettings(role=Role.EXTRACT, llm="ollama/gone", llm_base_url=NOWHERE, fallback="custom/test")
    async with await open_engine(_settings(tmp_path, server.base_url, role=(reads,)), retry=AT_ONCE) as kb:
        report = await kb.add(await _texts(tmp_path), root=tmp_path)
        assert report.n_added == 3
        (note,) = report.notes
        assert note.startswith("ollama/gone cannot be used, so its fallback replaces it: Nothing answers at 127.0.0.1")
    assert server.stats().total(RequestKind.OTHER).n_completed == 1
