"""Components: what all requests of a server share, and the checks that come before an engine is asked."""

import logging
from dataclasses import dataclass, field

from pydantic import ValidationError
from starlette.requests import Request

from quipu.errors import QuipuError
from quipu.server.operations import Permission
from quipu.server.wire import RequestRefused
from quipu.server.workspaces import Workspaces

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a server listens and what it allows. `hosts` are the names in Host headers that it answers to."""

    host: str = "127.0.0.1"
    port: int = 8787
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    max_body_bytes: int = 1 << 20
    max_upload_bytes: int = 100 << 20
    graceful_s: int = 5

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return self.host in ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerComponents:
    """What serves requests: the workspaces, and the options of the server."""

    workspaces: Workspaces
    options: ServerOptions = field(default_factory=ServerOptions)

    def check(self, request: Request, permission: Permission | None, workspace: str) -> None:
        """Raise RequestRefused if the sender may not call an operation that needs `permission` on a workspace."""
        if permission is None or self.options.is_loopback:
            return
        raise RequestRefused(401, "This needs a key.", headers={"www-authenticate": "Bearer"})

    def report(self, error: Exception, request: Request) -> None:
        """Log an error that nobody raised on purpose, without anything of the request but its id."""
        if not isinstance(error, QuipuError | RequestRefused | ValidationError):
            _log.error("request %s failed", request.scope.get("request_id", ""), exc_info=error)
