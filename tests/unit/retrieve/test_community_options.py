"""The options of strategies on communities: from settings to the query, and what is refused."""

import pytest

from quipu.errors import InvalidInput
from quipu.model.query import Query
from quipu.retrieve.question import check_query
from quipu.settings import Settings


def test_settings_become_options_of_the_query() -> None:
    settings = Settings(community_level=1, dynamic_selection=True, drift_follow_ups=7, report_tokens=900)
    query = settings.query("Who?")
    assert (query.community_level, query.dynamic_selection, query.drift_follow_ups) == (1, True, 7)
    assert query.budget.reports == 900


def test_defaults_of_settings_and_query_agree() -> None:
    assert Settings().query("Who?") == Query(text="Who?")


@pytest.mark.parametrize(
    ("nothing", "less", "name"),
    [
        (Query(text="Who?", community_level=0), Query(text="Who?", community_level=-1), "community_level"),
        (Query(text="Who?", drift_follow_ups=0), Query(text="Who?", drift_follow_ups=-1), "drift_follow_ups"),
    ],
)
def test_less_than_nothing_is_refused_and_nothing_is_not(nothing: Query, less: Query, name: str) -> None:
    check_query(nothing)
    with pytest.raises(InvalidInput, match=f"{name} = -1"):
        check_query(less)
