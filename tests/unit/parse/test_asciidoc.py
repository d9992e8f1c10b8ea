"""Tests of the AsciiDoc parser."""

import pytest

from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts


def parsed(text: str) -> ParsedDocument:
    return read("a.adoc", text.encode())


def test_sections_are_headings_and_the_header_gives_title_and_author() -> None:
    document = parsed(
        "= Roads of Rome\nAnn Lee <ann@example.org>\nv1.0, 2024-01-01\n:toc:\n:keywords: roads\n\n"
        "== Via Appia ==\n\nIt leads to\nBrindisi.\n\n// a comment\n=== Length\n\nLong.\n"
    )
    assert texts(document) == ["Roads of Rome", "Via Appia", "It leads to Brindisi.", "Length", "Long."]
    assert document.blocks[-1].headings == ("Roads of Rome", "Via Appia", "Length")
    assert (document.title, dict(document.metadata)) == ("Roads of Rome", {"author": "Ann Lee", "keywords": "roads"})


def test_underlined_titles_are_headings_and_other_lines_of_signs_are_not() -> None:
    document = parsed(
        "git-road(1)\n===========\n\nNAME\n----\ngit-road - Build\n\n----\ncode\n----\n\n修路\n~~~~\n\n走。\n"
    )
    assert texts(document) == ["git-road(1)", "NAME", "git-road - Build", "```text\ncode\n```", "修路", "走。"]
    assert document.blocks[-1].headings == ("git-road(1)", "NAME", "修路")


def test_terms_stand_above_the_text_that_explains_them() -> None:
    document = parsed(
        "-a::\n--all::\n\tTake all\n\troads.\n+\nBut not paths.\n\n--one:: Take one.\n\n"
        "Delete a road::\n+\n------\nrm road\n------\n"
    )
    assert texts(document) == [
        "-a, --all\nTake all roads.",
        "But not paths.",
        "--one\nTake one.",
        "Delete a road:",
        "```text\nrm road\n```",
    ]


def test_lists_are_nested_numbered_and_continued_after_an_attached_block() -> None:
    document = parsed(
        "* one\nmore\n** two\n* three\n\n. first\n+\n[source,shell]\n----\nls\n----\n"
        ". second\n.. inner\n\nText.\n\n. again\n<.> mark\n"
    )
    assert texts(document) == [
        "- one more\n  - two\n- three\n  1. first",
        "```shell\nls\n```",
        "  2. second\n    1. inner",
        "Text.",
        "1. again\n  <1> mark",
    ]


def test_blocks_keep_their_captions_their_kind_and_what_is_inside() -> None:
    document = parsed(
        ".An example\n====\n[NOTE]\nRoads wind.\n\nTIP: Walk.\n====\n\n[WARNING]\n--\nOld stones.\n--\n\n"
        "////\nnot read\n////\n\n++++\n<b>not read</b>\n++++\n\n[verse]\nAll roads\nlead\n\n"
        "```python\nx = 1\n```\n\nimage::map.png[A map,200]\n"
    )
    assert texts(document) == [
        "An example\nNote: Roads wind.",
        "Tip: Walk.",
        "Warning: Old stones.",
        "```text\nAll roads\nlead\n```",
        "```python\nx = 1\n```",
        "A map",
    ]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("|===\n|Road |Miles\n\n|Appia\n|350\n|Flaminia |209\n|===\n", "Road | Miles"),
        ('[cols="2*",options="header"]\n|===\n|Road\n|Miles\n|Appia |350\n|Flaminia a|209\n|===\n', "Road | Miles"),
        ("[%header]\n|===\n|Road|Miles\n|Appia|350\n.1+|Flaminia|209\n|===\n", "Road | Miles"),
    ],
)
def test_cells_of_tables_are_put_in_rows(text: str, header: str) -> None:
    document = parsed(text)
    assert texts(document) == ["Road | Miles\nAppia | 350\nFlaminia | 209"]
    assert (document.blocks[0].kind, document.blocks[0].header) == ("table", header)


def test_a_cell_over_several_columns_and_a_repeated_cell_take_their_places() -> None:
    assert texts(parsed("[cols=3*]\n|===\n2+|wide |a\n3*|same\n|a\\|b |c |d\n|===\n")) == [
        "wide |  | a\nsame | same | same\na|b | c | d"
    ]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("See linkgit:git-log[1] and <<roads,the roads>>, or <<end>>.", "See git-log(1) and the roads, or end."),
        (
            "Read https://example.org/a[the page^] or link:b.html[that].",
            "Read the page (https://example.org/a) or that.",
        ),
        ("*Bold*, _slanted_, #marked# and `a *b* c`.", "Bold, slanted, marked and `a *b* c`."),
        ("2 * 3 * 4, a_b_c, C# and F#, *.py and *.txt", "2 * 3 * 4, a_b_c, C# and F#, *.py and *.txt"),
        (":v: 1.2\n\nVersion {v}{nbsp}of C{plus}{plus}, {unknown}.", "Version 1.2 of C++, {unknown}."),
        (
            "Press kbd:[Ctrl+C] in menu:File[New > Road].footnote:[Or not.]",
            "Press Ctrl+C in File > New > Road. (Or not.)",
        ),
        ("[[here]]An ((index)) term(((hidden))) +\nand a new line.", "An index term and a new line."),
    ],
)
def test_inline_markup_is_reduced_to_its_text(text: str, plain: str) -> None:
    assert texts(parsed(text)) == [plain]


def test_a_list_after_a_term_is_a_new_one() -> None:
    assert texts(parsed(". one\n\nroad:: A way.\n\n. again\n"))[-1] == "1. again"


def test_a_line_in_brackets_that_is_no_style_is_text() -> None:
    document = parsed("[.lead]\nRoads wind.\n\n[1] Livy, [Book 9]\n\n[[end]]\nSee [a] and [b]\n[Livy] or [Pliny]\n")
    assert texts(document) == ["Roads wind.", "[1] Livy, [Book 9]", "See [a] and [b] [Livy] or [Pliny]"]


def test_attributes_do_not_multiply() -> None:
    lines = [":a0: 0123456789", *(f":a{n}: {{a{n - 1}}}{{a{n - 1}}}" for n in range(1, 60)), "", "{a59}"]
    assert texts(parsed("\n".join(lines))) == ["{a59}"]


def test_blocks_that_do_not_end_and_deep_ones_are_read() -> None:
    assert texts(parsed("----\nTo Rome.")) == ["To Rome."]
    assert texts(parsed("".join(f"```x{n}\n" for n in range(20_000)) + "To Rome.")) == ["To Rome."]
    fences = [("=*_"[n % 3]) * (4 + n) for n in range(60)]
    assert "To Rome." in parsed("\n".join([*fences, "To Rome.", *reversed(fences)])).text
