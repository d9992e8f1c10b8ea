"""Tests of the parser of Rich Text."""

import pytest

from quipu.errors import InvalidDocument
from tests.unit.parse.files import read, texts


def test_rich_text_is_read_in_its_code_page_without_pictures_and_styles() -> None:
    parsed = read(
        "a.rtf",
        rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset204 Arial;}{\f1\fcharset0 Times;}}{\stylesheet{\s1 Heading;}}"
        rb"{\pard\outlinelevel0 Roads\par}\pard\f0 \'cc\'ee\'f1\'ea\'e2\'e0 \u8364 ? and \b bold\b0 .\par"
        rb"{\pict 89504e47}{\*\generator X;}\f1 caf\'e9\line end\par"
        rb"\trowd\intbl Name\cell Year\cell\row\intbl Appia\cell 312\cell\row\pard Last.\par}",
    )
    assert texts(parsed) == ["Roads", "Москва € and bold.", "café\nend", "Name | Year\nAppia | 312", "Last."]
    assert [block.kind for block in parsed.blocks] == ["heading", "paragraph", "paragraph", "table", "paragraph"]


def test_a_character_is_read_by_its_number_and_its_replacements_are_left_out() -> None:
    assert texts(read("a.rtf", rb"{\rtf1\uc2 caf\u233 e?.\par\uc0 \u1052 \u-4051 .}")) == ["café.", "М\uf02d."]
    assert texts(read("a.rtf", rb"{\rtf1 \u55357 ?\u56832 ?}")) == ["😀"]  # two halves of a surrogate pair


def test_the_code_page_of_a_group_ends_with_the_group() -> None:
    fonts = rb"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}}"
    assert texts(read("a.rtf", rb"{\rtf1\ansicpg1252" + fonts + rb"{\f1\'ec\'e8\'f0} caf\'e9}")) == ["мир café"]


def test_braces_backslashes_and_the_text_of_unknown_words_stay() -> None:
    assert texts(read("a.rtf", rb"{\rtf1 a \{b\} \\c \unknown7 d\~e}")) == ["a {b} \\c d\u00a0e"]


def test_unbalanced_and_very_deep_groups_are_read() -> None:
    assert texts(read("a.rtf", b"{\\rtf1 " + b"{" * 5_000 + b"deep" + b"}" * 6_000 + b" last}")) == ["deep last"]


def test_bytes_that_are_not_rich_text_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="Rich Text"):
        read("a.rtf", b"plain")
