"""Tests of the parser of reStructuredText."""

from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts


def rst(*lines: str) -> ParsedDocument:
    return read("notes/the-road.rst", "\n".join(lines).encode())


def kinds(parsed: ParsedDocument) -> list[str]:
    return [block.kind for block in parsed.blocks]


def test_sections_make_the_path_and_the_lone_first_one_the_title() -> None:
    parsed = rst(
        "=====", "Roads", "=====", "", "To Rome.", "", "Parts", "-----", "", "Stones.", "", "Sand", "~~~~", "", "x"
    )
    assert parsed.title == "Roads"
    assert texts(parsed) == ["Roads", "To Rome.", "Parts", "Stones.", "Sand", "x"]
    assert [block.headings for block in parsed.blocks][3:] == [
        ("Roads", "Parts"), ("Roads", "Parts"), ("Roads", "Parts", "Sand"),
    ]  # fmt: skip


def test_a_document_of_several_equal_parts_has_no_title_of_its_own() -> None:
    parsed = rst("Version 2", "---------", "", "New.", "", "Version 1", "---------", "", "Old.")
    assert parsed.title == "the road"
    assert [block.headings for block in parsed.blocks] == [(), ("Version 2",), (), ("Version 1",)]


def test_a_title_in_wide_letters_needs_no_longer_line_and_a_short_line_is_accepted() -> None:
    assert rst("道路建设", "========", "", "文。").title == "道路建设"
    assert rst("A Long Title", "=========", "", "Text.").title == "A Long Title"


def test_fields_at_the_start_and_link_targets_are_no_text() -> None:
    parsed = rst(
        ":orphan:",
        ":author: Ann",
        "",
        ".. _road:",
        "",
        ".. a comment",
        "   of two lines",
        "",
        "Roads",
        "=====",
        "",
        "A.",
    )
    assert texts(parsed) == ["Roads", "A."]
    assert (parsed.title, dict(parsed.metadata)) == ("Roads", {"author": "Ann"})


def test_wrapped_lines_are_joined_and_markup_is_reduced_to_its_text() -> None:
    parsed = rst(
        "See :doc:`the guide </guide>`, :class:`~quipu.Store` and",
        "`the site <https://a.org>`_ or `Docs`_, *not* ``f(*args)``",
        "of :pep:`8`, **bold**, |name|, a\\*b and road_.", "", ".. |name| replace:: Quipu",
    )  # fmt: skip
    assert texts(parsed) == [
        "See the guide, Store and the site (https://a.org) or Docs, not `f(*args)` of PEP 8, bold, Quipu, a*b and road."
    ]
    assert texts(rst("道路", "建设")) == ["道路建设"]


def test_code_is_kept_with_its_indentation() -> None:
    parsed = rst(
        "Run::",
        "",
        "    def f():",
        "        return 1",
        "",
        "Then:",
        "",
        ".. code-block:: python",
        "   :linenos:",
        "",
        "   x = 1",
        "",
        ">>> x",
        "1",
    )
    assert texts(parsed) == [
        "Run:",
        "```text\ndef f():\n    return 1\n```",
        "Then:",
        "```python\nx = 1\n```",
        "```text\n>>> x\n1\n```",
    ]
    assert kinds(parsed) == ["paragraph", "code", "paragraph", "code", "code"]


def test_a_list_is_one_block_unless_it_holds_code() -> None:
    parsed = rst("- one", "  more", "- two", "", "  * inner", "", "1. first", "#. second")
    assert texts(parsed) == ["- one more\n- two\n  * inner", "1. first\n#. second"]
    assert kinds(parsed) == ["list", "list"]
    parsed = rst("1.  Run this::", "", "        make", "", "2.  Done.")
    assert texts(parsed) == ["1. Run this:", "```text\nmake\n```", "2. Done."]


def test_a_definition_stays_with_its_term() -> None:
    assert texts(rst("``--app``", "    Which app", "    to run.", "", "term", "    Text.", "", "    More.")) == [
        "`--app`\nWhich app to run.", "term\nText.", "More.",
    ]  # fmt: skip


def test_notes_and_changes_say_what_they_are_and_tabs_are_read() -> None:
    parsed = rst(
        ".. note:: Take care.", "", ".. warning::", "", "   It burns.", "", ".. versionadded:: 2.0", "   The flag.", "",
        ".. tabs::", "", "   .. group-tab:: Linux", "", "      .. code-block:: text", "", "         $ ls",
    )  # fmt: skip
    assert texts(parsed) == [
        "Note: Take care.",
        "Warning: It burns.",
        "Added in version 2.0: The flag.",
        "Linux",
        "```text\n$ ls\n```",
    ]


def test_what_a_directive_describes_is_a_heading_above_its_text() -> None:
    parsed = rst(
        "Settings",
        "========",
        "",
        ".. py:data:: DEBUG",
        "",
        "    Debug mode.",
        "",
        "    Default: ``False``",
        "",
        "After.",
    )
    assert texts(parsed) == ["Settings", "DEBUG", "Debug mode.", "Default: `False`", "After."]
    assert [block.headings for block in parsed.blocks][2:] == [("Settings", "DEBUG")] * 2 + [("Settings",)]


def test_directives_that_build_a_site_are_left_out() -> None:
    parsed = rst(
        ".. toctree::",
        "   :maxdepth: 2",
        "",
        "   install",
        "   usage",
        "",
        ".. currentmodule:: a",
        "",
        "Text.",
        "",
        ".. image:: a.png",
    )
    assert texts(parsed) == ["Text."]


def test_tables_are_rows_with_their_header() -> None:
    grid = rst(
        "+------+-------+",
        "| Name | Year  |",
        "+======+=======+",
        "| Ann  | 1901  |",
        "|      | about |",
        "+------+-------+",
    )
    assert texts(grid) == ["Name | Year\nAnn | 1901 about"]
    simple = rst(
        "====  =====", "Name  Year", "====  =====", "Ann   1901", "      about", "Bob", "====  =====", "", "After."
    )
    assert texts(simple) == ["Name | Year\nAnn | 1901 about\nBob", "After."]
    listed = rst(
        ".. list-table:: Kings",
        "   :header-rows: 1",
        "",
        "   * - Name",
        "     - Year",
        "   * - Ann",
        "     - 1901",
        "       about",
    )
    assert texts(listed) == ["Kings", "Name | Year\nAnn | 1901 about"]
    commas = rst(".. csv-table::", '   :header: "Name", "Year"', "", '   "Ann", 1901')
    assert texts(commas) == ["Name | Year\nAnn | 1901"]
    assert [parsed.blocks[-1].header for parsed in (grid, listed, commas)] == ["Name | Year"] * 3


def test_a_transition_is_no_text_and_a_footnote_is() -> None:
    assert texts(rst("A [1]_.", "", "-----", "", "B.", "", ".. [1] The note.")) == ["A [1]_.", "B.", "[1] The note."]


def test_deep_nesting_ends_as_code() -> None:
    parsed = rst(*(" " * depth + "word" + "\n" for depth in range(60)))
    assert "code" in kinds(parsed)
    assert parsed.text.count("word") == 60


def test_the_last_row_of_a_grid_table_needs_no_border() -> None:
    parsed = rst("+---+---+", "| a | b |", "+===+===+", "| c | d |", "| e | f |", "", "End.")
    assert texts(parsed) == ["a | b\nc e | d f", "End."]


def test_a_cell_of_a_hundred_thousand_lines_is_read_at_once() -> None:
    words = ["word"] * 100_000
    listed = rst(".. list-table::", "", "   * - a", *(f"       {word}" for word in words))
    assert texts(listed) == [" ".join(["a", *words])]
    simple = rst("=== ====", "a   b", *(f"    {word}" for word in words), "=== ====")
    assert texts(simple) == [" ".join(["a | b", *words])]


def test_the_terms_that_one_explanation_has_are_one_line() -> None:
    parsed = rst(
        ".. glossary::",
        "",
        "    lemma",
        "    normal form",
        "        The first form.",
        "",
        "    stem",
        "        A part.",
    )
    assert texts(parsed) == ["lemma, normal form\nThe first form.", "stem\nA part."]


def test_a_mark_of_a_setting_above_its_section_is_no_heading() -> None:
    parsed = rst(".. setting:: max_size", "", "max_size", "~~~~~~~~", "", "Default: 4.")
    assert texts(parsed) == ["max_size", "Default: 4."]
    described = rst(".. setting:: max_size", "", "   Default: 4.")
    assert texts(described) == ["max_size", "Default: 4."]


def test_a_directive_may_stand_after_several_spaces() -> None:
    assert texts(rst("..  code:: shell", "", "    ls", "", "..  note::", "", "    Look.")) == [
        "```shell\nls\n```",
        "Note: Look.",
    ]


def test_code_with_comments_is_no_text() -> None:
    commented = rst("::", "", "    # This asks the index for all of the entities that it has.", "    kb.entities()")
    assert texts(commented)[0].startswith("```text\n# This asks")
    sentences = rst("::", "", "    This is the text of a letter that is in the archive of the town.")
    assert not texts(sentences)[0].startswith("```")


def test_a_picture_behind_a_name_leaves_no_word() -> None:
    parsed = rst(
        "Caravel", "=======", "", "|Build| |Version|", "", "Counts |what|.", "", ".. |Build| image:: https://a/b.svg",
        "   :target: https://a", ".. |Version| image:: c.svg", ".. |what| replace:: camels",
    )  # fmt: skip
    assert "Build" not in parsed.text
    assert "Counts camels." in parsed.text
