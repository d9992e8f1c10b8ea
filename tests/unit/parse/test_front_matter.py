"""Tests of front matter."""

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import Metadata
from quipu.parse.front_matter import split_front_matter


def metadata(yaml: str) -> Metadata:
    return split_front_matter(f"---\n{yaml}\n---\nbody", "a.md").metadata


def test_keys_become_metadata_and_the_body_follows() -> None:
    text = "---\ntitle: A Road\nyear: 1901\nlength: 2.5\nis_open: true\nnote:\n---\n\nBody"
    front = split_front_matter(text, "a.md")
    assert front.metadata == {"title": "A Road", "year": 1901, "length": 2.5, "is_open": True, "note": None}
    assert text[front.body_start :] == "\nBody"


def test_dates_become_iso_text() -> None:
    assert metadata("date: 2024-01-02\nat: 2024-01-02T03:04:05Z") == {
        "date": "2024-01-02",
        "at": "2024-01-02T03:04:05+00:00",
    }


def test_lists_of_scalars_become_tuples_of_text_and_others_json() -> None:
    assert metadata("tags: [a, 1, true, 2024-01-02]\nlegs: [{to: Rome, km: 5}, [x]]") == {
        "tags": ("a", "1", "true", "2024-01-02"),
        "legs": '[{"to": "Rome", "km": 5}, ["x"]]',
    }


def test_nested_keys_are_joined_with_a_dot() -> None:
    assert metadata("author:\n  name: Ann\n  born: {year: 1901}") == {"author.name": "Ann", "author.born.year": 1901}


def test_numbers_json_cannot_hold_become_text() -> None:
    assert metadata("x: .inf\ny: .nan") == {"x": "inf", "y": "nan"}


def test_empty_front_matter_is_removed() -> None:
    front = split_front_matter("---\n---\nbody", "a.md")
    assert (front.body_start, front.metadata) == (8, {})


@pytest.mark.parametrize(
    "text",
    [
        "body",
        "---\nA rule above prose\n---\nmore",
        "---\ntitle: never closed\n\nbody",
        "text\n---\na: b\n---\n",
        "----\na: b\n----\n",
    ],
)
def test_a_rule_is_not_front_matter(text: str) -> None:
    assert split_front_matter(text, "a.md").body_start == 0


def test_malformed_yaml_is_refused_with_line_and_problem() -> None:
    with pytest.raises(
        InvalidDocument, match=r"front matter of a\.md is not valid YAML, line 3: mapping values"
    ) as caught:
        metadata("title: A Road\nsubtitle: long: road")
    assert "---" in caught.value.remedy


@pytest.mark.parametrize(
    ("yaml", "reason"),
    [
        ("date: 2024-13-45", "month must be"),
        ("x: " + "[" * 60_000, "nests more than 50 deep"),
        ("a: &a [x, x]\nb: *a", "alias"),
        ("x: !!python/object:os.system {}", "not valid YAML"),
        ("x: \x7f", "not valid YAML"),
    ],
)
def test_values_that_cannot_be_used_are_refused(yaml: str, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        metadata(yaml)


def test_half_a_surrogate_pair_and_nul_do_not_get_into_metadata() -> None:
    assert metadata('x: "a\\ud800b\\0c"') == {"x": "a?bc"}
