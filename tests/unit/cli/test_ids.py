"""Ids in tables: at any width of the terminal they stand in one piece, so that they can be copied."""

import asyncio
import json
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from quipu.cli.app import cli
from quipu.cli.output import print_table, styled, table
from quipu.model.document import SourceDocument
from quipu.settings import Settings
from quipu.wiring import open_engine

LONG = "letters/of the department of classics/1948/Alice Kober to Michael Ventris on the script of Knossos (copy 2).md"
TEXT = "# Letters\n\nAlice Kober wrote to Michael Ventris about the script of Knossos. She sorted its signs."
QUESTION = "Who wrote to Michael Ventris?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a document that has a long id."""
    folder = tmp_path_factory.mktemp("ids") / "kb"
    asyncio.run(_build(folder))
    return folder


async def _build(folder: Path) -> None:
    async with await open_engine(Settings(index=folder)) as kb:
        await kb.add(SourceDocument(id=LONG, content=TEXT.encode(), media_type="text/markdown"))


def run(index: Path, width: int, *arguments: str) -> str:
    """Return what a command prints on a terminal of this width."""
    ran = CliRunner().invoke(cli, ["--index", str(index), *arguments], env={"COLUMNS": str(width)})
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.mark.parametrize("width", [60, 80])
def test_the_id_of_a_document_is_in_one_piece_in_every_table(index: Path, width: int) -> None:
    chunk = json.loads(run(index, width, "show", "document", LONG, "--json"))["chunks"][0]["id"]
    shows_both = (
        ("search", "Kober"),
        ("show", "chunk", chunk),
        ("show", "document", LONG),
        ("show", "entity", "Alice Kober"),
        ("explain", QUESTION),
    )
    for arguments in shows_both:
        printed = run(index, width, *arguments)
        assert LONG in printed and chunk in printed, arguments
    assert LONG in run(index, width, "docs")
    for arguments in (("ask", QUESTION, "--trace"), ("compare", QUESTION)):
        assert chunk in run(index, width, *arguments), arguments


@pytest.mark.parametrize(("width", "is_table"), [(30, False), (60, True)])
def test_a_table_that_is_too_wide_beside_its_ids_becomes_lines(width: int, is_table: bool) -> None:
    listing = table("n", "id", "text", right=["n"], ids=["id"])
    listing.add_row("1", styled("x" * 20), styled("one two three four five six seven"))
    out = StringIO()
    print_table(Console(file=out, width=width), listing)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert ("x" * 20 in lines) is not is_table
    assert sum("x" * 20 in line for line in lines) == 1
    assert "seven" in out.getvalue()
