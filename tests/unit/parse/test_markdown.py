"""Tests of the Markdown parser and of front matter."""

import time

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import Metadata, ParsedDocument, SourceDocument
from quipu.parse.markdown import MarkdownParser, split_front_matter, without_html

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


def test_a_lower_first_heading_is_the_title_if_it_is_above_all_others() -> None:
    assert read("## Road\n\nText.\n\n### Part\n").title == "Road"
    assert read("## 1.2\n\nText.\n\n## 1.1\n").title == ""
    assert read("Text.\n\n## Road\n").title == ""


COMMENTED = """# Files

<!-- YAML
added: v1
changes:
  - version: v2
-->

> Stable

The call <!-- see 4 --> reads a file.
<!-- an aside -->
It returns `<!-- text -->`.

```html
<!-- in code -->
```

    <!-- indented -->

<!-- never closed
"""


def test_comments_are_no_text_but_in_code_they_stay() -> None:
    parsed = read(COMMENTED)
    assert "YAML" not in parsed.text
    assert "see 4" not in parsed.text
    assert [parsed.text[block.start : block.end] for block in parsed.blocks] == [
        "# Files",
        "> Stable",
        "The call  reads a file.",
        "It returns `<!-- text -->`.",
        "```html\n<!-- in code -->\n```",
        "<!-- indented -->",
        "<!-- never closed",
    ]


PAGE_WITH_TAGS = """<h1 align="center">
  <img src="logo.png">The <em>Road</em>
</h1>

<p align="center">
<a href="https://example.org"><img src="https://img.shields.io/a.svg" alt="version"></a>
</p>

<br>

<p align="center">
<strong>It goes on.</strong></br>
See <a href="map.md">the map</a>.
</p>

[![a](https://img.shields.io/a.svg)](https://example.org)
[![b](https://img.shields.io/b.svg)](https://example.org)

- One<br>two, 10<sup>6</sup>, `<b>`, List<T> and a < b > c <!-- x --> y <!-- z -->
"""


def test_a_page_that_would_show_nothing_keeps_its_comments() -> None:
    assert read("<!--#include virtual='a' -->").text == "<!--#include virtual='a' -->"


def test_tags_of_html_are_no_text_and_lines_that_show_nothing_go() -> None:
    parsed = read(PAGE_WITH_TAGS)
    assert parsed.title == "The Road"
    assert "\n\n\n" not in parsed.text
    words = "# The Road It goes on. See [the map](map.md). - One two, 10<sup>6</sup>, `<b>`, List<T> and a < b > c y"
    assert " ".join(parsed.text.split()) == words


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "<!-- -->\n",
        "`<!-- -->",
        "```\n<!-- -->\n",
        "<!-- -->" + " " * 99,
        "<!-- x>",
        "<h1>",
        "<p>",
        "<p>\n",
        '<a href="',
    ],
)
def test_much_html_takes_linear_time(piece: str) -> None:
    short, long = (_cpu_s(piece * n) for n in (10_000, 80_000))
    assert long < 40 * (short + 0.01)


def _cpu_s(markup: str) -> float:
    start = time.process_time()
    without_html(f"{markup}>")
    return time.process_time() - start
