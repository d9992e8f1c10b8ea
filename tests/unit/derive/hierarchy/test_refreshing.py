"""Tests of the hierarchy as a model tells it: what is asked, what that costs, and what becomes of failures."""

import json
from dataclasses import replace

import pytest

from quipu.derive import hierarchy
from quipu.derive.derivation import DerivationContext
from quipu.derive.hierarchy.planning import CUT, EXTRACTIVE, REFUSED
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import Hierarchy
from quipu.model.derivation import Freshness
from quipu.model.ids import digest
from quipu.testing.facts import document, entity, passage, relation
from tests.unit.derive.hierarchy.guilds import (
    Narrator,
    aggregates,
    between,
    is_between,
    ledger,
    material_of,
    refresh,
    shelf,
    told,
    with_model,
    words,
)
from tests.unit.derive.workshop import dump, publish, remove


async def test_each_aggregate_costs_a_call_and_so_does_each_relation_over_its_allowance(
    guilds: DerivationContext,
) -> None:
    await refresh(guilds)
    n_cut = sum(each.model == CUT for each in await between(guilds))
    llm = Narrator()
    report = await refresh(with_model(guilds, llm))
    found = await aggregates(guilds)
    assert (len(llm.about_aggregates), len(llm.about_relations)) == (len(found), n_cut)
    assert report.n_calls == report.n_built + n_cut == len(found) + n_cut
    assert n_cut > 0
    reports = await told(guilds)
    assert {each.model for each in reports.values()} == {"fake/narrator aggregate/1"}
    assert {each.model for each in await between(guilds)} == {"fake/narrator aggregate/1", EXTRACTIVE}
    assert (await refresh(with_model(guilds, llm))).n_calls == 0
    assert (await refresh(guilds)).n_built == 0, "what a model wrote stands where there is none"
    assert await guilds.store.verify() == []


async def test_a_request_holds_what_is_told_of_its_members_and_goes_with_their_documents(
    guilds: DerivationContext,
) -> None:
    llm = Narrator()
    await refresh(with_model(guilds, llm))
    found, reports = await aggregates(guilds), await told(guilds)
    (root,) = [each for each in found.values() if not each.parent]
    request = next(
        each for each in llm.about_aggregates if reports[root.id].title.removeprefix("Guild ") in _mark(each)
    )
    children = [reports[each.id] for each in found.values() if each.parent == root.id]
    for child in children:
        assert f"- {child.title}: {child.summary}" in material_of(request)
    assert request.role is Role.REPORT
    assert request.lifetime is ReplyLifetime.ALL_DOCUMENTS
    assert request.documents == tuple(sorted(f"ledger{number:02}" for number in range(20)))
    leaf = next(each for each in found.values() if each.level == 1)
    request = next(
        each for each in llm.about_aggregates if reports[leaf.id].title.removeprefix("Guild ") in _mark(each)
    )
    async with guilds.store.view() as view:
        assert request.documents == (await view.cluster_documents([leaf.id]))[leaf.id]
        for each in await view.entities(leaf.members):
            assert f"- {each.name}: {' '.join(each.description.split())}" in material_of(request)


async def test_only_what_changed_is_asked_again(guilds: DerivationContext) -> None:
    await refresh(with_model(guilds, Narrator()))
    before = await told(guilds)
    await publish(guilds, document("note", passage("Potter N1 rests.", entity("Potter N1", description="At rest."))))
    llm = Narrator()
    report = await refresh(with_model(guilds, llm))
    after = await told(guilds)
    changed = {name for name, each in after.items() if each.title != getattr(before.get(name), "title", "")}
    assert len(llm.about_aggregates) == len(changed) == report.n_built < len(after) / 2
    assert report.n_unchanged == len(after) - len(changed)


async def test_equal_names_merge_nothing(guilds: DerivationContext) -> None:
    same = json.dumps({"name": "Potter N1", "description": "All the same.", "findings": []})
    await refresh(with_model(guilds, Narrator(lambda each: None if is_between(each) else same)))
    found = await aggregates(guilds)
    assert {each.title for each in (await told(guilds)).values()} == {"Potter N1"}
    assert sum(len(each.members) for each in found.values()) == max(each.n_entities for each in found.values())
    assert len([each for each in found.values() if not each.parent]) == 1
    assert await guilds.store.verify() == []


@pytest.mark.parametrize("error", [Unavailable("No key."), OverBudget("Enough.")])
async def test_where_no_call_is_made_any_more_the_rest_waits_and_is_made_up_for(
    guilds: DerivationContext, error: QuipuError
) -> None:
    llm = Narrator()
    llm.reply = lambda _: error if len(llm.requests) > 5 else None
    seen: list[int] = []
    report = await refresh(replace(with_model(guilds, llm), on_event=lambda each: seen.append(each.n_done)))  # type: ignore[union-attr]
    assert report.stopped == str(error)
    assert seen[-1] == 5
    assert (report.n_built, len(await told(guilds))) == (5, 5)
    assert len(await between(guilds)) > 0
    healed = await refresh(with_model(guilds, Narrator()))
    assert (healed.stopped, healed.n_built) == ("", len(await aggregates(guilds)) - 5)


async def test_relations_no_call_was_left_for_wait_and_are_made_up_for(guilds: DerivationContext) -> None:
    llm = Narrator()
    llm.reply = lambda _: OverBudget("Enough.") if len(llm.about_relations) > 3 else None
    await refresh(with_model(guilds, llm))
    n_cut = sum(each.model == CUT for each in await between(guilds))
    assert n_cut > 0
    after = with_model(guilds, Narrator())
    async with guilds.store.view() as view:
        state = await hierarchy.DERIVATION.read_state(view, after)
        assert (await hierarchy.DERIVATION.read_state(view, guilds)).freshness is Freshness.FRESH, "rules have told all"
    assert (state.freshness, state.n_stale, state.cost.n_calls) == (Freshness.STALE, n_cut, n_cut)
    assert (await refresh(after)).n_calls == n_cut
    assert CUT not in {each.model for each in await between(guilds)}
    assert (await refresh(after)).n_calls == 0


async def test_a_relation_is_not_asked_for_before_both_its_ends_are_told(guilds: DerivationContext) -> None:
    llm = Narrator()
    llm.reply = lambda _: Overloaded("Busy.") if len(llm.requests) == 1 else None
    report = await refresh(with_model(guilds, llm))
    assert "one of its ends could not be told" in {why for _, why in report.failed}
    assert (report.n_built, report.n_unchanged) == (len(await told(guilds)), 0)
    assert all(material_of(each).count("- Guild ") >= 2 for each in llm.about_relations)
    await refresh(with_model(guilds, llm))
    assert all(material_of(each).count("- Guild ") >= 2 for each in llm.about_relations)
    assert CUT not in {each.model for each in await between(guilds)}


async def test_one_that_fails_leaves_those_above_it_untold_until_it_does_not(guilds: DerivationContext) -> None:
    llm = Narrator()
    llm.reply = lambda _: Overloaded("Busy.") if len(llm.requests) == 1 else None
    report = await refresh(with_model(guilds, llm))
    of_aggregates = [why for what, why in report.failed if what.startswith("aggregate")]
    assert sorted(of_aggregates) == ["Busy.", "something in it could not be told"]
    found = await aggregates(guilds)
    untold = found.keys() - (await told(guilds)).keys()
    assert {found[each].parent for each in untold} <= untold | {""}
    healed = await refresh(with_model(guilds, Narrator()))
    assert (healed.failed, healed.n_built) == ((), len(untold))


@pytest.mark.parametrize("reply", ["I cannot say.", '{"name": "", "description": "x"}', Refused("No.")])
async def test_rules_stand_in_where_no_reply_is_of_use(guilds: DerivationContext, reply: str | QuipuError) -> None:
    llm = Narrator()
    llm.reply = lambda each: reply if each.messages == llm.requests[0].messages else None
    report = await refresh(with_model(guilds, llm))
    assert (report.failed, len(report.notes)) == ((), 1)
    by_rule = [each for each in (await told(guilds)).values() if each.model.startswith(REFUSED)]
    assert [each.model for each in by_rule] == [f"{REFUSED} fake/narrator"]
    assert (await refresh(with_model(guilds, Narrator()))).n_calls == 0


async def test_a_relation_no_reply_on_which_is_of_use_keeps_what_the_documents_say(guilds: DerivationContext) -> None:
    llm = Narrator(lambda each: Refused("No.") if is_between(each) else None)
    report = await refresh(with_model(guilds, llm))
    assert (report.failed, len(report.notes)) == ((), 1)
    assert all(each.description for each in await between(guilds))
    assert f"{REFUSED} fake/narrator" in {each.model for each in await between(guilds)}
    assert (await refresh(with_model(guilds, Narrator()))).n_calls == 0


async def test_what_is_removed_while_the_model_tells_of_it_is_told_nowhere(guilds: DerivationContext) -> None:
    await publish(
        guilds,
        document(
            "secret",
            passage(
                "Quixotic.",
                entity("Potter N1", description="A quixotic one."),
                entity("Smith N2", description="The same."),
                relation("Potter N1", "Smith N2", "A quixotic bond.", weight=9),
            ),
        ),
    )
    llm = Narrator()

    async def forget(request: ChatRequest) -> None:
        if "quixotic" in material_of(request):
            llm.before = None
            await remove(guilds, "secret")

    def repeat(request: ChatRequest) -> str | None:
        told_of = "quixotic" if "quixotic" in material_of(request) else "plain"
        if is_between(request):
            return told_of
        return json.dumps({"name": told_of, "description": told_of, "findings": [told_of]})

    llm.before, llm.reply = forget, repeat
    report = await refresh(with_model(guilds, llm))
    assert "quixotic" not in words(await dump(guilds))
    assert (report.failed, report.stopped) == ((), "")
    assert (await told(guilds)).keys() == (await aggregates(guilds)).keys()
    assert (await refresh(with_model(guilds, Narrator()))).n_calls == 0


async def test_told_by_a_model_it_is_the_same_however_it_came_about(
    guilds: DerivationContext, other: DerivationContext
) -> None:
    await refresh(with_model(guilds, Narrator()))
    await publish(guilds, ledger("more"))
    await remove(guilds, "ledger07")
    await refresh(with_model(guilds, Narrator()))
    await publish(other, ledger("more"), *(each for each in reversed(shelf()) if each.id != "ledger07"))
    await refresh(with_model(other, Narrator()))
    assert await dump(guilds) == await dump(other)


async def test_a_relation_is_told_again_where_one_of_its_ends_is(
    guilds: DerivationContext, other: DerivationContext
) -> None:
    """The new document says something of one entity, and nothing of its relations."""
    new = document("new", passage("Potter N2 was seen.", entity("Potter N2", "Person", "Potter N2 is in ledger00.")))
    await refresh(with_model(guilds, Narrator()))
    shape = (await aggregates(guilds)).keys()
    await publish(guilds, new)
    llm = Narrator()
    await refresh(with_model(guilds, llm))
    assert shape == (await aggregates(guilds)).keys()
    assert len(llm.about_relations) > 0
    await publish(other, *shelf(), new)
    await refresh(with_model(other, Narrator()))
    assert await dump(guilds) == await dump(other)


async def test_made_anew_the_model_tells_of_everything_again(guilds: DerivationContext) -> None:
    await refresh(with_model(guilds, Narrator()))
    first = await dump(guilds)
    llm = Narrator()
    report = await refresh(with_model(guilds, llm), rebuild=True)
    assert report.n_calls == len(llm.requests) > report.n_built == len(await aggregates(guilds))
    assert await dump(guilds) == first


async def test_progress_counts_up_to_all_there_is(guilds: DerivationContext) -> None:
    seen: list[tuple[int, int]] = []
    llm = Narrator()
    events = replace(with_model(guilds, llm), on_event=lambda each: seen.append((each.n_done, each.n_total)))  # type: ignore[union-attr]
    await refresh(events)
    assert seen[-1] == (len(llm.requests), len(llm.requests))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


async def test_what_communities_there_are_is_not_touched(guilds: DerivationContext) -> None:
    await refresh(guilds)
    async with guilds.store.view() as view:
        assert await view.clusters(Hierarchy.COMMUNITIES) == []


def _mark(request: ChatRequest) -> str:
    return digest(material_of(request))[:8]
