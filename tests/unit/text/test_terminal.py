"""Tests of what is printed of documents: it must not steer the terminal."""

import json

from quipu.text.unicode import clean, clean_json, clean_name

NASTY = "\x1b[31mred\x07 \x9b1m \u202etxt.exe \x7f\u2066"


def test_control_characters_are_made_visible() -> None:
    assert clean("a\x1b[31m\x9bb\u202e\n\tc") == "a\ufffd[31m\ufffdb\ufffd\n\tc"
    assert clean("\U0001f469\u200d\U0001f467 שלום é") == "\U0001f469\u200d\U0001f467 שלום é"


def test_a_name_stays_on_its_line_and_is_cut() -> None:
    assert clean_name("a\nFailed: b\tc") == "a\ufffdFailed: b\ufffdc"
    assert len(clean_name("x" * 5_000)) == 1_001


def test_json_with_control_characters_escaped_means_the_same() -> None:
    text = json.dumps({NASTY: "\U000e0001"}, ensure_ascii=False)
    assert clean(clean_json(text)) == clean_json(text)
    assert json.loads(clean_json(text)) == {NASTY: "\U000e0001"}
