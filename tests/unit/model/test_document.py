"""Tests of flat metadata."""

from datetime import date

from quipu.model.document import flatten_metadata


def test_scalars_stay_and_keys_become_text() -> None:
    values = {"a": "x", 2: 3, False: None, date(2024, 1, 2): 1.5}
    assert flatten_metadata(values) == {"a": "x", "2": 3, "false": None, "2024-01-02": 1.5}


def test_sets_are_sorted_and_empty_collections_stay_empty() -> None:
    assert flatten_metadata({"a": {"y", "x"}, "b": [], "c": {}}) == {"a": ("x", "y"), "b": ()}


def test_a_number_no_database_compares_is_text() -> None:
    assert flatten_metadata({"a": 2**63 - 1, "b": 2**63, "c": -(2**70)}) == {
        "a": 2**63 - 1,
        "b": "9223372036854775808",
        "c": "-1180591620717411303424",
    }
