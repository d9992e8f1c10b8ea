"""Tests of the JSON and JSON lines parser."""

import json

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import json as json_parser
from tests.unit.parse.files import read, texts

KOBER = {"name": "Alice Kober", "born": 1906, "works": ["a", "b"], "at": {"city": "Austin", "since": None}}


def test_each_line_is_a_record_of_flattened_values() -> None:
    data = "\n".join([json.dumps(KOBER), "", '{"name": "Ventris", "alive": false}']).encode()
    parsed = read("a.jsonl", data)
    assert texts(parsed) == [
        "name: Alice Kober\nborn: 1906\nworks: a, b\nat.city: Austin",
        "name: Ventris\nalive: false",
    ]


def test_the_text_of_a_record_stands_as_it_is_under_its_title() -> None:
    record = {"title": "Roads", "year": 1500, "text": "They led west.\n\nAnd some led east, to the sea."}
    parsed = read("a.jsonl", json.dumps(record).encode())
    assert texts(parsed) == ["Roads", f"year: 1500\n\n{record['text']}"]
    assert [(block.kind, block.headings) for block in parsed.blocks] == [("heading", ()), ("paragraph", ("Roads",))]


def test_a_file_is_a_list_of_records_wherever_it_is() -> None:
    in_list = read("a.json", json.dumps([KOBER, KOBER]).encode())
    assert len(in_list.blocks) == 2
    in_object = read("a.json", json.dumps({"version": 2, "people": [KOBER], "tags": ["x"]}).encode())
    assert texts(in_object)[:2] == ["version: 2\ntags: x", "people"]
    assert in_object.blocks[2].headings == ("people",)


def test_a_line_that_is_not_json_is_named() -> None:
    with pytest.raises(InvalidDocument, match=r"Line 2 of a\.jsonl is not valid JSON at column 7"):
        read("a.jsonl", b'{"a": 1}\n{"a": }\n')
    with pytest.raises(InvalidDocument, match=r"a\.json is not valid JSON at line 2, column"):
        read("a.json", b"[1,\n")


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'{"a":' * 200 + b"1" + b"}" * 200]
)
def test_deep_nesting_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument) as caught:
        read("a.json", data)
    assert caught.value.remedy


def test_more_values_than_the_limit_are_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parser, "MAX_JSON_VALUES", 100)
    with pytest.raises(InvalidDocument, match="more than 100 values") as caught:
        read("a.json", json.dumps(list(range(200))).encode())
    assert ".jsonl" in caught.value.remedy
    assert len(read("a.jsonl", b'{"a": 1}\n' * 200).blocks) == 200


def test_a_long_key_is_not_repeated_for_every_value() -> None:
    data = json.dumps({"k" * 100_000: {str(n): n for n in range(1_000)}}).encode()
    assert len(read("a.json", data).text) < 3 * len(data)


def test_a_file_of_empty_values_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="nothing to index"):
        read("a.json", b'{"a": null, "b": ""}')
