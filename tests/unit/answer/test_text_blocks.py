"""Tests of text blocks: what the lines of a passage are, and what introduces them."""

import pytest

from quipu.answer.text_blocks import BlockKind, read_blocks


def _kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind.value, text[block.start : block.end].partition("\n")[0]) for block in read_blocks(text)]


def test_markdown_is_read_by_its_markup() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    text = f"# Camels\n\nThey carry salt.\n\n- one hump\n- two humps\n\n```sh\nload salt\n\ngo\n```\n\n{table}"
    assert _kinds(text) == [
        ("heading", "# Camels"),
        ("paragraph", "They carry salt."),
        ("item", "- one hump"),
        ("item", "- two humps"),
        ("code", "```sh"),
        ("row", "| a | b |"),
        ("noise", "|---|---|"),
        ("row", "| 1 | 2 |"),
    ]


def test_underlined_headings_and_indented_code_are_read() -> None:
    text = "Camels\n======\n\nLoad them::\n\n    load(camel, salt=40)\n    go()\n\nThen go."
    assert _kinds(text) == [
        ("heading", "Camels"),
        ("paragraph", "Load them::"),
        ("code", "load(camel, salt=40)"),
        ("paragraph", "Then go."),
    ]


def test_a_short_line_alone_is_a_heading_where_no_markup_tells() -> None:
    text = "Loading camels\n\nThey kneel down first, and then the salt is tied on."
    assert _kinds(text)[0] == ("heading", "Loading camels")
    assert _kinds("They kneel down first.\n\nThen the salt is tied on.")[0][0] == "paragraph"


@pytest.mark.parametrize("line", ["Default: `None`", "Size: 12 kB of text", "名称：“caravan”"])
def test_a_line_alone_that_gives_a_value_is_no_heading(line: str) -> None:
    blocks = read_blocks(f"The name of the caravan.\n\n{line}\n\nIt is painted on the first cart.")
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH] * 3


def test_a_line_alone_with_the_number_of_a_section_is_a_heading_even_if_it_asks() -> None:
    asks = "2.6. Can I load a camel without a saddle?\n\nYes, but nobody does."
    assert _kinds(asks)[0][0] == "heading"
    assert _kinds("# Camels\n\n" + asks)[1][0] == "heading"
    assert _kinds("2.1 included apt, and it was released in March.\n\nMore followed.")[0][0] == "paragraph"


@pytest.mark.parametrize(
    "text",
    [
        "```mermaid\ngraph TD\n```",
        "+----+\n| ab |\n+----+".replace("| ab |", "│ ab │"),
        "[![badge](https://example.org/a.svg)](https://example.org)",
        "{% include 'menu.html' %}",
        ".. toctree::",
        '<p align="center">\n  <a href="https://example.org/camel"><img src="camel.png" width="450"/></a>',
        "1.1. What is a camel?\n1.2. How do I load one?\n1.3. What does it eat?",
        "Camels ........ 3\nHorses ........ 12\nDonkeys ....... 20",
        "----------",
        "[`load()`]: #load\n[camels]: https://example.org 'Camels'\n[gate]: <gate.md>",
    ],
)
def test_drawings_badges_and_templates_are_noise(text: str) -> None:
    assert {block.kind for block in read_blocks(text)} == {BlockKind.NOISE}


def test_text_with_tags_or_placeholders_is_no_noise() -> None:
    assert _kinds("<p>A camel carries salt, and it drinks <b>once</b> a week.</p>")[0][0] == "paragraph"
    assert _kinds("branch <branchname> [<stash>]::")[0][0] != "noise"
    assert _kinds("[^1]: Camels.")[0][0] == _kinds("[note]: this is about camels.")[0][0] == "paragraph"


def test_lines_above_a_fence_that_closes_code_of_an_earlier_chunk_are_code() -> None:
    cut = "    load(camel)\n\n# Camels come first\n```\n\nThen run:\n\n```text\nride\n```"
    assert [kind for kind, _ in _kinds(cut)] == ["code", "noise", "paragraph", "code"]
    whole = "# Camels\n\nLoad them.\n\n```\n\nload(camel)\n```"
    assert _kinds(whole)[0][0] == "heading"


def test_a_sentence_with_links_is_no_noise() -> None:
    links = "Use [the gate](https://example.org/a-long-address/of-the-gate). Once you\n[have it](https://example.org/another)"
    assert _kinds(f"{links}, add this:")[0][0] == "paragraph"
    assert _kinds("[Home](https://example.org/home) · [Roads](https://example.org/roads)")[0][0] == "noise"


def test_blocks_know_their_heading_and_what_introduces_them() -> None:
    text = "# Camels\n\nTwo kinds:\n\n- one hump\n- two humps\n\n## Horses\n\nThey drink more."
    blocks = read_blocks(text)
    heading_by_line = {text[block.start : block.end]: block.heading for block in blocks}
    assert heading_by_line["- two humps"] == 0
    assert heading_by_line["They drink more."] == 4
    assert [block.lead for block in blocks] == [-1, -1, 1, 1, -1, -1]


def test_an_indented_block_is_introduced_by_the_line_above_it() -> None:
    text = "max_camels\n    How many camels go together.\n\n    Default: 40"
    blocks = read_blocks(text)
    assert [block.lead for block in blocks] == [-1, 0, 0]


def test_a_row_is_introduced_by_its_header_or_by_the_row_that_divides_the_table() -> None:
    text = "| kind | load |\n|---|---|\n| desert | |\n| camel | 200 |\n| city | |\n| camel | 90 |"
    rows = [block for block in read_blocks(text) if block.kind is BlockKind.ROW]
    blocks = read_blocks(text)
    leads = [text[blocks[row.lead].start : blocks[row.lead].end] if row.lead >= 0 else "" for row in rows]
    assert leads == ["", "| kind | load |", "| desert | |", "| desert | |", "| city | |"]


def test_no_text_has_no_blocks() -> None:
    assert read_blocks("") == read_blocks("\n \n") == ()


@pytest.mark.parametrize("part", ["1", "1.", ". ", ".", "- ", "+ -", "| ", "<a ", "[a](", "![", "*", "`", "{", "a. "])
def test_long_runs_in_a_line_are_read_in_a_number_of_steps_that_follows_their_length(part: str) -> None:
    """A pattern that backtracks would take minutes here, and the test would be noticed."""
    run = part * (2_000 // len(part))
    for line in (run, f"0.{run}, which is close", f"a{run}"):
        read_blocks(f"The value is stored as\n{line}\nby most machines.")


def test_a_list_of_links_that_a_line_announces_is_a_list_and_any_other_is_a_menu() -> None:
    links = "- [Local search](#local)\n- [Global search](#global)\n- Basic search\n- [Questions](#questions)"
    announced = read_blocks(f"# Search\n\nIt has these tasks:\n\n{links}\n\nThe end of the page.")
    assert [block.kind for block in announced].count(BlockKind.ITEM) == 4
    menu = read_blocks(f"# Search\n\nSee the page.\n\n{links}\n\nThe end of the page.")
    assert [block.kind for block in menu].count(BlockKind.ITEM) == 1
    badges = read_blocks("Its state:\n\n- [![build](b.svg)](https://example.org)\n- ![cover](c.svg)")
    assert [block.kind for block in badges] == [BlockKind.PARAGRAPH, BlockKind.NOISE, BlockKind.NOISE]


@pytest.mark.parametrize("line", ['See [the page]({{ "a.html" | url }}).', "Count them with `ls | wc`."])
def test_a_pipe_inside_code_or_a_template_makes_no_row(line: str) -> None:
    assert [block.kind for block in read_blocks(f"{line} The caravan leaves in spring.")] == [BlockKind.PARAGRAPH]
    assert [block.kind for block in read_blocks(f"| {line} | 12 |")] == [BlockKind.ROW]


@pytest.mark.parametrize(
    "text",
    [
        "# A\n\na.\n\n## B\n\nb.\n\n### C\n\nc.\n\n### D\n\nd.\n\n## E\n\ne.",
        "A\n=====\n\na.\n\nB\n-----\n\nb.\n\nC\n~~~~~\n\nc.\n\nD\n~~~~~\n\nd.\n\nE\n-----\n\ne.",
    ],
)
def test_a_heading_is_under_the_one_above_of_a_higher_level(text: str) -> None:
    blocks = read_blocks(text)
    name = {index: text[block.start : block.end].strip("# ")[0] for index, block in enumerate(blocks)}
    above = {name[index]: name.get(block.heading, "") for index, block in enumerate(blocks)}
    assert above == {"A": "", "a": "A", "B": "A", "b": "B", "C": "B", "c": "C", "D": "B", "d": "D", "E": "A", "e": "E"}


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("Q: Do camels swim?\nA: Yes.\n\nQ: Do they fly?\nA: No.", ["Q: Do camels swim?", "Q: Do they fly?"]),
        ("Q: Do camels swim?\nA: Yes.\nQ: Do they\nfly?\nA: No.", ["Q: Do camels swim?", "Q: Do they\nfly?"]),
        ("**Q1.** Do camels swim?\n\n**A1.** Yes, they do.", ["**Q1.** Do camels swim?"]),
        ("Вопрос: Плавают ли они?\nОтвет: Да.", ["Вопрос: Плавают ли они?"]),
        ("问：骆驼会游泳吗？\n答：会。", ["问：骆驼会游泳吗？"]),
        ("Q: a question that nobody answers.", []),
        ("F: the force, in newtons. A: the area.", []),
    ],
)
def test_a_question_with_its_answer_below_is_a_heading(text: str, questions: list[str]) -> None:
    headings = [block for block in read_blocks(text) if block.kind is BlockKind.HEADING]
    assert [text[block.start : block.end].rstrip() for block in headings] == questions


def test_a_table_of_contents_on_one_line_is_no_paragraph() -> None:
    contents = "1 Caravans . . . . . . . 7 1.1 Their history . . . . . . 8 1.2 What they carry . . . . . . 9"
    assert [block.kind for block in read_blocks(contents)] == [BlockKind.NOISE]
    (block,) = read_blocks("He waited . . . . 5 days for the caravan, and then he left.")
    assert block.kind is BlockKind.PARAGRAPH
