"""`quipu mcp`: the index as tools for the client of a language model."""

import click

from quipu.cli.options import QuipuCommand, with_engine


@click.command(
    "mcp",
    cls=QuipuCommand,
    examples=(
        "quipu mcp",
        "quipu --index ./kb mcp --write",
        "claude mcp add kb -- quipu --index ./kb mcp",
    ),
)
@click.option("--write", is_flag=True, help="Also let the model add, replace and remove documents.")
def command(*, write: bool) -> None:
    """Answer a client of the Model Context Protocol (MCP).

    It talks over standard input and output. The client starts this command itself: enter the command and its
    arguments in its configuration. `quipu serve` answers the same protocol over HTTP, at /mcp.
    """
    from quipu.server.mcp_endpoint import serve_over_stdio

    with_engine(lambda kb: serve_over_stdio(kb, may_write=write))
