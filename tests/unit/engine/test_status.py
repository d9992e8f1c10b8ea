"""Tests of derivations made on demand: made by name, kept up to date, told of, dropped, and missed by a question."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from quipu import testing
from quipu.engine import Quipu
from quipu.engine.status import with_price
from quipu.errors import NotFound, OverBudget, Overloaded, Stale, Unavailable
from quipu.model.delta import Delta
from quipu.model.derivation import Freshness
from quipu.model.event import Event, Progress
from quipu.model.usage import Price, Stage
from quipu.testing.llm import ScriptedLLM
from quipu.text.formatting import format_cost
from tests.laws.model_world import script, scripted_engine, travels
from tests.laws.world import engine
from tests.unit.engine.fakes import Shelf, add_strategy, shelve

DEMO = Path(testing.__file__).parent / "corpora" / "demo"


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as opened:
        await opened.add(travels("a.md"))
        yield opened


@pytest.fixture
def shelves(kb: Quipu) -> tuple[Shelf, Shelf, Shelf]:
    """Two, of which the second needs the first and asks a model, and a third that stands alone."""
    made = Shelf("ground"), Shelf("tower", needs=("ground",), n_calls=2), Shelf("shed")
    shelve(kb, *made)
    return made


async def _states(kb: Quipu) -> dict[str, Freshness]:
    made_on_demand = {each.name for each in kb._components.catalog}
    return {each.name: each.freshness for each in (await kb.status()).derivations if each.name in made_on_demand}


async def test_nothing_is_made_that_nobody_asked_for(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    report = await kb.refresh()
    assert (report.derivations, shelves[0].log) == ((), [])
    assert await _states(kb) == dict.fromkeys(("ground", "tower", "shed"), Freshness.MISSING)


async def test_what_is_named_is_made_after_what_it_needs_and_its_calls_are_counted(
    kb: Quipu, shelves: tuple[Shelf, ...]
) -> None:
    events: list[Event] = []
    report = await kb.refresh(["tower"], on_event=events.append)
    assert shelves[0].log == [("ground", False), ("tower", False)]
    assert [(each.name, each.n_built, each.stopped) for each in report.derivations] == [
        ("ground", 1, ""),
        ("tower", 1, ""),
    ]
    assert [(row.stage, row.n_calls, row.subject) for row in report.usage] == [(Stage.REPORT, 2, "")]
    assert report.is_complete
    assert [(e.n_done, e.detail) for e in events if isinstance(e, Progress) and e.stage == "derive"] == [
        (0, "ground"),
        (1, "tower"),
        (2, ""),
    ]
    assert await _states(kb) == {"ground": Freshness.FRESH, "tower": Freshness.FRESH, "shed": Freshness.MISSING}


async def test_what_is_kept_is_brought_up_to_date_by_adding_removing_and_resuming(
    kb: Quipu, shelves: tuple[Shelf, ...]
) -> None:
    await kb.refresh(["shed"])
    log = shelves[0].log
    added = await kb.add(travels("b.md"))
    removed = await kb.remove(["a.md"])
    await kb.resume()
    assert log == [("shed", False)] * 4
    assert [each.name for each in (*added.derivations, *removed.refreshed.derivations)] == ["shed", "shed"]
    assert removed.removed == ("a.md",)
    assert (await _states(kb))["shed"] is Freshness.FRESH


async def test_rebuilding_makes_what_is_named_anew_and_no_more(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    await kb.refresh(["tower", "shed"])
    shelves[0].log.clear()
    await kb.refresh(["tower"], rebuild=True)
    assert shelves[0].log == [("ground", False), ("tower", True), ("shed", False)]
    shelves[0].log.clear()
    await kb.refresh(rebuild=True)
    assert shelves[0].log == [("ground", True), ("tower", True), ("shed", True)]


async def test_a_stop_leaves_out_what_asks_a_model_and_what_needs_that(kb: Quipu) -> None:
    spent = OverBudget("All is spent.")
    shelves = (
        Shelf("asking", n_calls=1, error=spent),
        Shelf("above", needs=("asking",)),
        Shelf("other", n_calls=1),
        Shelf("plain"),
    )
    shelve(kb, *shelves)
    report = await kb.refresh(["above", "other", "plain"])
    assert [name for name, _ in shelves[0].log] == ["asking", "plain"]
    stopped = str(spent)
    assert {each.name: each.stopped for each in report.derivations} == {
        "asking": stopped,
        "above": stopped,
        "other": stopped,
        "plain": "",
    }
    assert (report.stopped, report.is_complete) == (stopped, False)
    shelves[0].error = None
    assert (await kb.refresh(["above", "other"])).is_complete


async def test_what_is_hindered_stays_as_it_is_with_what_needs_it_and_all_else_is_made(kb: Quipu) -> None:
    shelves = Shelf("mill"), Shelf("bakery", needs=("mill",)), Shelf("asking", n_calls=1)
    shelve(kb, *shelves)
    await kb.refresh(["bakery", "asking"])
    shelves[0].log.clear()
    shelves[0].missing = Unavailable("There is no wheel.", remedy="Build one.")
    report = await kb.add(travels("b.md"))
    note = "left as it was: There is no wheel. Build one."
    assert [name for name, _ in shelves[0].log] == ["asking"]
    assert [each.notes for each in report.derivations] == [(note,), (note,), ()]
    assert (report.stopped, [each.stopped for each in report.derivations]) == ("", ["", "", ""])
    with pytest.raises(Unavailable, match="There is no wheel"):
        await kb.refresh(["bakery"])


async def test_work_that_stops_before_all_is_read_refreshes_nothing(tmp_path: Path) -> None:
    async with scripted_engine(tmp_path, llm := ScriptedLLM(script())) as kb:
        shelf = Shelf("shed")
        shelve(kb, shelf)
        await kb.add(travels("a.md"))
        await kb.refresh(["shed"])
        shelf.log.clear()

        async def spent(*_args: object) -> None:
            raise OverBudget("All is spent.")

        llm.complete = spent  # type: ignore[method-assign, assignment]
        report = await kb.add(travels("b.md"))
        assert report.stopped.startswith("All is spent.")
        assert (shelf.log, report.derivations) == ([], ())


async def test_an_unknown_name_is_refused_before_anything_is_done(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    with pytest.raises(NotFound, match="Did you mean 'tower'"):
        await kb.refresh(["shed", "towre"])
    assert shelves[0].log == []


@pytest.mark.parametrize("name", ["summaries", "vectors", "topology"])
async def test_what_every_index_keeps_is_not_made_on_demand_nor_dropped(kb: Quipu, name: str) -> None:
    for refused in (kb.refresh([name]), kb.plan([name]), kb.drop([name])):
        with pytest.raises(NotFound, match=f"'{name}' is not made on demand: every index keeps it") as raised:
            await refused
        assert "`quipu refresh`" in raised.value.remedy


async def test_a_plan_tells_what_would_be_made_and_what_it_costs(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    planned = await kb.plan(["tower"])
    assert [(each.name, each.freshness, each.cost.n_calls) for each in planned] == [
        ("ground", Freshness.MISSING, 0),
        ("tower", Freshness.MISSING, 2),
    ]
    await kb.refresh(["tower"])
    assert await kb.plan() == ()
    assert shelves[0].log == [("ground", False), ("tower", False)]


async def test_a_plan_to_rebuild_tells_what_is_made_anew_and_what_all_of_it_costs(
    kb: Quipu, shelves: tuple[Shelf, ...]
) -> None:
    await kb.refresh(["tower", "shed"])
    shelves[0].log.clear()
    (tower,) = await kb.plan(["tower"], rebuild=True)
    assert (tower.name, tower.freshness, tower.is_rebuild, tower.cost.n_calls) == ("tower", Freshness.FRESH, True, 20)
    everything = await kb.plan(rebuild=True)
    assert [(each.name, each.is_rebuild, each.cost.n_calls) for each in everything] == [
        ("full text and links", True, 0),
        ("ground", True, 0),
        ("tower", True, 20),
        ("shed", True, 0),
    ]
    assert everything[0].n_items == (await kb.status()).n_chunks
    assert shelves[0].log == []
    with pytest.raises(NotFound):
        await kb.plan(["towre"], rebuild=True)


async def test_a_plan_to_rebuild_costs_what_is_missing_or_behind_as_ever(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    (ground, tower) = await kb.plan(["tower"], rebuild=True)
    assert (ground.is_rebuild, tower.is_rebuild, tower.freshness) == (False, True, Freshness.MISSING)
    assert tower.cost.n_calls == 2, "it has never been made: this is what making it costs"


async def test_what_is_dropped_is_kept_no_longer_nor_what_needs_it(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    await kb.refresh(["tower", "shed"])
    assert await kb.drop(["ground"]) == ("ground", "tower")
    assert await kb.drop(["ground"]) == ()
    shelves[0].log.clear()
    await kb.add(travels("b.md"))
    assert shelves[0].log == [("shed", False)]


async def test_status_lists_what_every_index_keeps_first(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    derivations = (await kb.status()).derivations
    assert [each.name for each in derivations] == ["summaries", "vectors", "topology", "ground", "tower", "shed"]
    vectors = next(each for each in derivations if each.name == "vectors")
    assert (vectors.freshness, vectors.n_items) == (Freshness.FRESH, (await kb.status()).n_vectors)


async def test_a_question_that_lacks_something_says_how_to_make_it_and_asks_nothing(
    kb: Quipu, shelves: tuple[Shelf, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = add_strategy(monkeypatch, lambda _: [], needs=("relations", "tower"))
    n_usage = len(await kb.usage())
    with pytest.raises(Stale) as raised:
        await kb.query("Who?", strategy="talkative")
    error = raised.value
    assert error.message == "The strategy 'talkative' needs derivations that are missing: ground, tower."
    calls = "about 2 model calls (2,000 tokens in, 20 out)"
    assert error.remedy == f"Run `quipu refresh tower` ({calls}), or ask with --auto-refresh."
    assert error.missing == ("ground", "tower")
    assert (told, len(await kb.usage())) == ([], n_usage)
    with pytest.raises(Stale):
        await kb.retrieve("Who?", strategy="talkative")


async def test_a_question_with_auto_refresh_makes_what_it_lacks_once(
    kb: Quipu, shelves: tuple[Shelf, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_strategy(monkeypatch, lambda _: [], needs=("shed",))
    for _ in range(2):
        assert (await kb.query("Who?", strategy="talkative", auto_refresh=True)).trace.stale == ()
    assert shelves[0].log == [("shed", False)]
    assert await kb.prepare("Who?", strategy="talkative") is None


async def test_what_cannot_be_made_is_told_with_the_reason(kb: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    shelve(kb, Shelf("shed", error=Overloaded("Too busy.")))
    add_strategy(monkeypatch, lambda _: [], needs=("shed",))
    with pytest.raises(
        Stale, match=r"The derivations that the strategy 'talkative' needs could not be computed. Too busy."
    ) as raised:
        await kb.query("Who?", strategy="talkative", auto_refresh=True)
    assert raised.value.missing == ("shed",)


async def test_what_is_stale_answers_and_the_trace_says_so(
    kb: Quipu, shelves: tuple[Shelf, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_strategy(monkeypatch, lambda _: [], needs=("shed",))
    await kb.refresh(["shed"])
    shelves[2].error = Overloaded("Too busy.")
    await kb.add(travels("b.md"))
    shelves[2].n_states = 0
    n_chunks = (await kb.status()).n_chunks
    stale = f"not up to date: shed ({n_chunks} to do); `quipu resume` finishes it."
    assert (await kb.query("Who?", strategy="talkative")).trace.stale == (stale,)
    assert stale in (await kb.retrieve("Who?", strategy="talkative")).notes
    assert shelves[2].n_states == 1, "the state of a revision is worked out once"


async def test_money_is_told_where_a_price_is_known(kb: Quipu, shelves: tuple[Shelf, ...]) -> None:
    (ground, tower) = await kb.plan(["tower"])
    assert tower.cost.money is None
    cost = with_price(tower.cost, Price(input=2.0, output=10.0)) + ground.cost
    assert cost.money == 2_100
    assert format_cost(cost) == "about 2 model calls (2,000 tokens in, 20 out, 0.0021 USD)"


async def _records(kb: Quipu) -> dict[str, dict[str, str]]:
    """Return the dump by kind: each record by what names it."""
    records: dict[str, dict[str, str]] = {}
    async for line in kb.dump():
        record = json.loads(line)
        name = (
            record.get("key") or record.get("id") or " -- ".join([record.get("source", ""), record.get("target", "")])
        )
        if record["kind"] in ("claim", "entity_mention", "link", "vector"):
            name = line
        records.setdefault(record["kind"], {})[name] = line
    return records


def _gone(kind: str, before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> set[str]:
    return set(before.get(kind, {})) - set(after.get(kind, {}))


def _changed(kind: str, before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> set[str]:
    left = after.get(kind, {})
    return {name for name, line in before.get(kind, {}).items() if name in left and left[name] != line}


def _reports(records: dict[str, dict[str, str]]) -> dict[str, str]:
    clusters = [json.loads(line) for kind in ("community", "aggregate") for line in records.get(kind, {}).values()]
    return {cluster["id"]: cluster["report"]["title"] for cluster in clusters if cluster["report"]}


async def test_what_a_removal_takes_is_told_before(tmp_path: Path) -> None:
    """On the demo corpus: the preview equals the difference that the commit of the removal makes."""
    random = Random("removals")
    async with engine(tmp_path) as kb:
        await kb.add(DEMO, root=DEMO)
        await kb.refresh(["communities", "reports", "hierarchy"])
        names = [document.id for document in await kb.documents()]
        while names:
            removed = random.sample(names, min(len(names), random.choice((1, 6, 15))))
            names = [name for name in names if name not in removed]
            before, n_before = await _records(kb), (await kb.status()).n_replies
            preview = await kb.preview_removal(removed, k=100_000)
            assert await _records(kb) == before
            await kb._store.commit(Delta(remove=removed))
            after = await _records(kb)
            assert preview.documents == tuple(removed)
            assert preview.n_chunks == len(_gone("chunk", before, after))
            assert preview.n_claims == len(_gone("claim", before, after))
            assert {entity.key for entity in preview.entities} == _gone("entity", before, after)
            assert {entity.key for entity in preview.entities_changed} == _changed("entity", before, after)
            assert {relation.id for relation in preview.relations} == _gone("relation", before, after)
            assert {relation.id for relation in preview.relations_changed} == _changed("relation", before, after)
            clusters = [f(kind, before, after) for f in (_gone, _changed) for kind in ("community", "aggregate")]
            assert preview.n_clusters_changed == len(set().union(*clusters))
            reports, left = _reports(before), _reports(after)
            assert dict(preview.reports) == {name: title for name, title in reports.items() if name not in left}
            assert preview.n_replies == n_before - (await kb.status()).n_replies
            counts = (preview.n_entities, preview.n_entities_changed, preview.n_relations, preview.n_relations_changed)
            lists = (preview.entities, preview.entities_changed, preview.relations, preview.relations_changed)
            assert counts == tuple(map(len, lists))
            await kb.refresh()


async def test_a_preview_names_only_as_many_as_are_asked_for(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await kb.add_text("Marco Polo met Kublai Khan in Shangdu. Marco Polo knew Ibn Battuta.", id="polo")
        preview = await kb.preview_removal(["polo"], k=1)
        assert preview.n_entities > len(preview.entities) == 1
        assert preview.entities[0].name == "Marco Polo"
        with pytest.raises(NotFound):
            await kb.preview_removal(["nobody"])
