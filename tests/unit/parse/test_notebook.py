"""Tests of the parser of Jupyter notebooks."""

import json
from typing import Any

import pytest

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument
from tests.unit.parse.files import read, texts


def notebook(*cells: dict[str, Any], **fields: object) -> ParsedDocument:
    return read("a.ipynb", json.dumps({"cells": cells, "nbformat": 4, **fields}).encode())


def markdown(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": list(lines)}


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_cells_are_read_in_order_under_their_headings() -> None:
    parsed = notebook(
        markdown("# Roads\n", "\n", "To Rome."), code("x = 1"), markdown("## End"), code("y = 2"),
        metadata={"kernelspec": {"name": "python3", "language": "python"}},
    )  # fmt: skip
    assert texts(parsed) == ["# Roads", "To Rome.", "```python\nx = 1\n```", "## End", "```python\ny = 2\n```"]
    assert [block.headings for block in parsed.blocks][2:] == [("Roads",), ("Roads",), ("Roads", "End")]
    assert (parsed.title, dict(parsed.metadata)) == ("Roads", {"language": "python"})


def test_the_first_heading_is_the_title_if_only_code_is_above_it() -> None:
    parsed = notebook(code("# licence"), markdown("## Global search"), markdown("Text."), markdown("## More"))
    assert parsed.title == "Global search"
    assert notebook(markdown("Text."), markdown("## Not a title")).title == "a"


def test_outputs_are_text_and_short() -> None:
    parsed = notebook(
        code(
            "print(1)",
            {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]},
            {"output_type": "execute_result", "data": {"text/html": "<b>x</b>", "text/plain": ["   a\n", "0  7"]}},
            {
                "output_type": "display_data",
                "data": {"image/png": "AAAA", "text/plain": "<Figure size 1x1 with 1 Axes>"},
            },
            {"output_type": "error", "ename": "KeyError", "evalue": "'b'", "traceback": ["long", "longer"]},
        ),
        code("loop()", {"output_type": "stream", "text": "line\n" * 500}),
    )
    first, output, _, long = texts(parsed)
    assert first == "```\nprint(1)\n```"
    assert output == "```\n1\n2\n   a\n0  7\nKeyError: 'b'\n```"
    assert long.count("line") == 20
    assert long.endswith("\n…\n```")


def test_colours_progress_bars_and_embedded_pictures_are_left_out() -> None:
    parsed = notebook(
        markdown("See ![the map](data:image/png;base64,AAAA) and ![](attachment:b.png)."),
        code("run()", {"output_type": "stream", "text": "10%\r50%\r\x1b[31m100%\x1b[0m\n"}),
    )
    assert texts(parsed) == ["See [Picture: the map] and .", "```\nrun()\n```", "```\n100%\n```"]


def test_code_with_fences_stays_one_block() -> None:
    parsed = notebook(code('text = """\n```\nx\n```\n"""'))
    assert [block.kind for block in parsed.blocks] == ["code"]


def test_a_notebook_of_format_3_is_read() -> None:
    cells = [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": "x", "outputs": []}]
    parsed = read("a.ipynb", json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode())
    assert texts(parsed) == ["## Old", "```\nx\n```"]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a": 1}', b'{"cells": ' + b"[" * 100_000])
def test_what_is_not_a_notebook_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidDocument, match="not a notebook") as caught:
        read("a.ipynb", content)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "cells", ['{"a": 1}', "[1, null, []]", '[{"cell_type": "code", "source": {"a": 1}, "outputs": [3]}]']
)
def test_cells_of_the_wrong_shape_hold_no_text(cells: str) -> None:
    with pytest.raises(InvalidDocument, match="holds no text"):
        read("a.ipynb", f'{{"cells": {cells}}}'.encode())
