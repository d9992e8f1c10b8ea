"""`quipu serve`: the engine over HTTP."""

from pathlib import Path

import click

from quipu.cli.options import QuipuCommand, index_folder, shared


def _prefix(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    from quipu.server.components import is_prefix

    prefix = text.rstrip("/")
    if text and not is_prefix(prefix):
        raise click.UsageError(f"--prefix {text!r} is no sub-path, or the server's own. Write it as /quipu.")
    return prefix


@click.command(
    "serve",
    cls=QuipuCommand,
    examples=(
        "quipu --index ./kb serve",
        "quipu serve --root ./workspaces",
        "quipu serve --port 9000",
        "curl -s localhost:8787/api/v1/workspaces/default/query -H 'content-type: application/json' "
        """-d '{"question": "Who built on the work of Alice Kober?"}'""",
    ),
)
@click.option("--root", metavar="DIR", type=click.Path(path_type=Path), help="Serve every index below this folder.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8787, show_default=True, type=click.IntRange(0, 65_535), help="0: any free port.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Also answer to this name in Host headers.")
@click.option(
    "--prefix", default="", metavar="PATH", callback=_prefix, help="Sub-path below which a proxy serves this: /quipu."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that serve.")
@click.option(
    "--max-upload", default=100, show_default=True, type=click.IntRange(1), metavar="MIB", help="Largest document."
)
@click.option(
    "--calls-per-minute", default=6_000.0, show_default=True, type=click.FloatRange(1), help="Limit of each key."
)
@click.option("--mcp-write", is_flag=True, help="Let tools at /mcp change documents, with a key that may.")
@click.option("--log-json", is_flag=True, help="Log each request on stderr, as a line of JSON.")
def command(
    *,
    root: Path | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    prefix: str,
    workers: int,
    max_upload: int,
    calls_per_minute: float,
    mcp_write: bool,
    log_json: bool,
) -> None:
    """Serve an index over HTTP, or every index below a folder.

    Without --root there is one workspace, `default`: the index of --index, which is created if it does not exist. Only
    programs on this machine can connect, and need no key until `quipu keys create` made one. Ctrl-C ends the server;
    unfinished work continues at the next start.
    """
    from quipu.server import ServerOptions, ServerPlan, serve

    if root is not None and shared().index:
        raise click.UsageError("Give --index DIR for one index, or --root DIR for all below a folder, not both.")
    options = ServerOptions(
        host=host,
        port=port,
        hosts=(*ServerOptions().hosts, *hosts),
        prefix=prefix,
        max_upload_bytes=max_upload << 20,
        calls_per_minute=calls_per_minute,
        mcp_may_write=mcp_write,
        log_json=log_json,
    )
    index = None if root else index_folder("quipu serve")
    plan = ServerPlan(index=index, root=root and root.absolute(), options=options, n_workers=workers)
    if not options.is_loopback and not plan.components().access.has_keys:
        root_option = f" --root {root}" if root else ""
        raise click.UsageError(
            f"--host {host} lets other machines connect, so a key is needed. "
            f"Make one: quipu keys create NAME{root_option}"
        )

    def announce(address: str) -> None:
        address += options.prefix
        click.echo(f"Serving {root or index} at {address}", err=True)
        for name, path in (("page", ""), ("API", "api/v1/openapi.json"), ("docs", "api/v1/docs")):
            click.echo(f"  {name:8} {address}/{path}", err=True)
        click.echo("Ctrl-C ends the server.", err=True)

    serve(plan, announce)
