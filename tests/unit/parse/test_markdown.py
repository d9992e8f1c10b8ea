"""Tests of the Markdown parser."""

from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.markdown import MarkdownParser

PAGE = """---
title: Front
---
# The *Long* `Road` &amp; more

Intro
goes on.

[ref]: https://example.org

Parts
-----
- one

  still one
- two

| a | b |
|---|---|
| 1 | 2 |

```py
# no heading
```

> quoted

### Deep
text
## Next
end
"""


def read(text: str) -> ParsedDocument:
    return MarkdownParser().parse(SourceDocument(id="a", content=text.encode(), media_type="text/markdown"))


def test_the_text_is_the_body_as_written() -> None:
    assert read(PAGE).text == PAGE.partition("---\n")[2].partition("---\n")[2]


def test_blocks_have_kinds_and_the_path_of_headings_above() -> None:
    parsed = read(PAGE)
    top = "The Long Road & more"
    assert [(block.kind, block.headings, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        ("heading", (), "# The *Long* `Road` &amp; more"),
        ("paragraph", (top,), "Intro\ngoes on."),
        ("paragraph", (top,), "[ref]: https://example.org"),
        ("heading", (top,), "Parts\n-----"),
        ("list", (top, "Parts"), "- one\n\n  still one\n- two"),
        ("table", (top, "Parts"), "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("code", (top, "Parts"), "```py\n# no heading\n```"),
        ("paragraph", (top, "Parts"), "> quoted"),
        ("heading", (top, "Parts"), "### Deep"),
        ("paragraph", (top, "Parts", "Deep"), "text"),
        ("heading", (top,), "## Next"),
        ("paragraph", (top, "Next"), "end"),
    ]


def test_the_title_is_that_of_the_front_matter_else_the_first_h1() -> None:
    assert read(PAGE).title == "Front"
    assert read("## Two\n\n# One\n\n# Other").title == "One"
    assert read("---\ntitle: 1984\n---\n# One").title == "1984"
    assert read("no heading").title == ""


def test_link_definitions_are_not_lost() -> None:
    parsed = read("[a]: https://example.org\n")
    assert [parsed.text[block.start : block.end] for block in parsed.blocks] == ["[a]: https://example.org"]


def test_an_empty_heading_is_a_block_but_not_a_path() -> None:
    assert [(block.kind, block.headings) for block in read("#\n\ntext").blocks] == [("heading", ()), ("paragraph", ())]


def test_the_header_of_a_table_is_its_first_row() -> None:
    parsed = read("Text.\n\n| Name | Year |\n|---|---|\n| Ann | 1901 |\n")
    assert [(block.kind, block.header) for block in parsed.blocks] == [("paragraph", ""), ("table", "| Name | Year |")]
