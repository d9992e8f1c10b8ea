"""What a model is shown in one call: within its tokens, in order."""

from dataclasses import replace
from random import Random

import pytest

from quipu.model.chat import Message
from quipu.model.query import Budget, Query
from quipu.providers.local import ByteTokenizer
from quipu.retrieve.steps.prompt_items import (
    CALL_TOKENS,
    FRAME_TOKENS,
    MIN_FILL,
    PromptItem,
    PromptSpace,
    first_that_fit,
    prompt_space,
    split_into_batches,
)
from tests.unit.retrieve.communities import report

TOKENS = ByteTokenizer()


def _shown(*costs: int) -> list[PromptItem]:
    return [PromptItem(id=str(n), titled_text=("", ""), n_tokens=cost) for n, cost in enumerate(costs)]


def _ids(runs: list[list[PromptItem]]) -> list[list[str]]:
    return [[each.id for each in run] for run in runs]


def test_batches_hold_all_items_in_order_each_within_its_tokens() -> None:
    assert _ids(split_into_batches(_shown(4, 6), 10)) == [["0", "1"]]
    assert _ids(split_into_batches(_shown(9, 9, 9), 10)) == [["0"], ["1"], ["2"]]
    assert split_into_batches([], 10) == []
    assert _ids(split_into_batches(_shown(50, 1), 10)) == [["0"], ["1"]]
    costs = Random("batches").choices(range(1, 9), k=300)
    runs = split_into_batches(_shown(*costs), 100)
    assert [each for run in _ids(runs) for each in run] == [str(n) for n in range(300)]
    filled = [sum(each.n_tokens for each in run) for run in runs]
    assert max(filled) <= 100
    assert min(filled[:-1]) > 100 * MIN_FILL


def test_a_report_that_grows_or_goes_leaves_most_batches_as_they_were() -> None:
    reports = _shown(*Random("reports").choices(range(300, 1_500), k=200))
    before = split_into_batches(reports, 11_500)
    n_changed = []
    for place in range(0, 200, 10):
        grown = replace(reports[place], n_tokens=reports[place].n_tokens + 900)
        for now in ([grown], []):
            changed = split_into_batches([*reports[:place], *now, *reports[place + 1 :]], 11_500)
            n_changed.append(sum(run not in before for run in changed))
    assert len(before) > 15
    assert sum(n_changed) / len(n_changed) < 2.5  # 5 if each were filled


def test_nothing_overtakes_what_does_not_fit() -> None:
    assert [each.id for each in first_that_fit(_shown(4, 9, 1), 10)] == ["0"]


@pytest.mark.parametrize(("total", "room"), [(30_000, CALL_TOKENS), (5_000, 4_990), (5, -5)])
def test_the_room_is_what_the_total_leaves_beside_the_frame(total: int, room: int) -> None:
    frame = (Message("system", "x" * 20), Message("user", "y" * 18))
    assert prompt_space(Query(text="?", budget=Budget(total=total)), frame, TOKENS).n_tokens == room


def test_a_report_is_shown_with_as_many_findings_as_fit() -> None:
    whole = report("a", "Short.", "First.", "Second. " * 20)
    texts = {}
    for n_tokens in (200, FRAME_TOKENS + 10, 5):
        shown = PromptSpace(n_tokens=n_tokens, tokenizer=TOKENS).fit_report(whole)
        texts[n_tokens] = shown and shown.titled_text
    assert texts[200] == ("On a", "Short.\n\nFirst.\n\n" + "Second. " * 20)
    assert texts[FRAME_TOKENS + 10] == ("On a", "Short.\n\nFirst.")
    assert texts[5] is None
