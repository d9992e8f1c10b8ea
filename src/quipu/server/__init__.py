"""Server: the engine over HTTP, for many callers at once.

app            all routes, and what surrounds each of them
operations     what an operation is; `openapi` describes them
questions …    the operations of one subject each
workspaces     the indexes that are served
wire           results, errors and streams as bytes
"""

import asyncio
import socket
from collections.abc import Callable

import uvicorn

from quipu.errors import InvalidInput
from quipu.server.app import make_app
from quipu.server.components import ServerComponents, ServerOptions
from quipu.server.workspaces import Workspaces

__all__ = ["ServerComponents", "ServerOptions", "Workspaces", "serve"]


async def serve(server: ServerComponents, on_ready: Callable[[str], None]) -> None:
    """Serve until the process is asked to end (SIGINT, SIGTERM); `on_ready` gets the address once it answers.

    Open streams end after `graceful_s` seconds. Raises InvalidInput if the address cannot be listened on.
    """
    options = server.options
    listening = _listen(options)
    host = f"[{options.host}]" if ":" in options.host else options.host
    config = uvicorn.Config(
        make_app(server),
        http="httptools",
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=options.graceful_s,
    )
    http_server = uvicorn.Server(config)
    with listening:
        serving = asyncio.ensure_future(http_server.serve(sockets=[listening]))
        on_ready(f"http://{host}:{listening.getsockname()[1]}")
        await serving


def _listen(options: ServerOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=1_024)
    except OSError as error:
        raise InvalidInput(
            f"The server cannot listen on {options.host}, port {options.port} ({error.strerror}).",
            remedy="Choose another port: quipu serve --port 8788",
        ) from error
