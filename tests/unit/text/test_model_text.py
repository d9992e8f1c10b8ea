"""JSON as models write it."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.text.model_text import find_json_values, parse_lenient_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, true, null]}', {"a": [1, 2.5, True, None]}),
        ('Sure! Here it is:\n```json\n{"a": 1}\n```\nAnything else?', {"a": 1}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
        ('{"a": [1, 2,], "b": 3,}', {"a": [1, 2], "b": 3}),
        ('{"a": 1 "b": 2\n"c": 3}', {"a": 1, "b": 2, "c": 3}),
        ('{"a" = 1; "b" => 2}', {"a": 1, "b": 2}),
        ("{'a': 'it's', 'b': None, 'c': False}", {"a": "it's", "b": None, "c": False}),
        ('{“a”: “b”, "c": „d“}', {"a": "b", "c": "d"}),
        ("{a: Alice Smith, b: c}", {"a": "Alice Smith", "b": "c"}),
        ('{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999}', dict.fromkeys("abcd")),
        ('{"a": 1, // one\n "b": /* two */ 2}', {"a": 1, "b": 2}),
        ('{"a": "He said "yes" to it", "b": 1}', {"a": 'He said "yes" to it', "b": 1}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        (r'{"a": "\alpha \"x\" \u00e9 \ud83d\ude00 \u12", }', {"a": '\\alpha "x" é 😀 \\u12'}),
        ('{"a": ["x", "y", "z', {"a": ["x", "y"]}),
        ('{"a": ["x", "y"', {"a": ["x", "y"]}),
        ('{"a": [{"b": 1}, {"b": 2, "c": "cut', {"a": [{"b": 1}]}),
        ('{"a": {"b": "whole", "c": "cut', {"a": {"b": "whole"}}),
        ('{"a": "whole", "b', {"a": "whole"}),
        ('{"a": "whole", "b": ', {"a": "whole"}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('As [the manual] says: {"a": 1}', {"a": 1}),
        ('{"a": 1}\n{"a": 2, "b": "the longer one"}', {"a": 2, "b": "the longer one"}),
        ('["a", "b"]', ["a", "b"]),
        ('"a"', "a"),
        ("42", 42),
        ("[]", []),
        ("", None),
        ("no JSON here", None),
        ("{", {}),
        ("[[[[", []),
        ("{}}", {}),
    ],
)
def test_json_is_read_however_it_is_written(text: str, value: object) -> None:
    assert parse_lenient_json(text) == value


def test_every_value_of_a_reply_is_found_and_whether_it_was_whole() -> None:
    matches = find_json_values('{"a": 1}\nand {"b": [2, 3')
    assert [(match.value, match.is_complete) for match in matches] == [({"a": 1}, True), ({"b": [2]}, False)]


def test_a_number_longer_than_python_reads_is_left_as_text() -> None:
    assert parse_lenient_json(f"{{a: {'9' * 5_000},}}") == {"a": None}


def test_depth_is_limited() -> None:
    deep = "[" * 50_000 + "]" * 50_000
    assert parse_lenient_json(deep) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(_JSON)
def test_json_proper_is_read_as_it_is(value: object) -> None:
    assert parse_lenient_json(json.dumps(value)) == value


_PART = st.sampled_from(
    [*"{}[],:\"'“”\\/*#\n ", "//", "/*", "*/", "null", "1", "a", "\\u", "\\ud83d", "```json", "</think>"]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(_PART, st.text(max_size=3)), max_size=60).map("".join))
def test_anything_can_be_read(text: str) -> None:
    value = parse_lenient_json(text)
    assert value is None or isinstance(value, dict | list | str | int | float)


@pytest.mark.parametrize("part", ['{"a":', "[1,", '["', "[ /*", "{a ", "['a' ", "\\", '"', "[[{", "{'", "/* ", "[a "])
def test_long_runs_are_read_in_a_number_of_steps_that_follows_their_length(part: str) -> None:
    """A pattern that backtracks would take minutes here, and the test would be noticed."""
    parse_lenient_json(part * (100_000 // len(part)))
    parse_lenient_json("[" + part * (100_000 // len(part)))


def test_a_long_reply_with_a_bracket_in_each_sentence_is_read_in_one_pass() -> None:
    text = "Alma Kober lives in Oslo. [1]\n" * 50_000
    begun = time.process_time()
    for _ in range(8):
        short = find_json_values(text[: len(text) // 8])
    middle = time.process_time()
    matches = find_json_values(text)
    ratio = (time.process_time() - middle) / (middle - begun)
    assert (len(short), len(matches)) == (6_250, 10_000)
    assert ratio < 4  # as much text at once; a search through all of it for each bracket would take 8 times as long
