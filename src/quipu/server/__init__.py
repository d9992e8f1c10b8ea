"""Server: the engine over HTTP, for many callers at once.

listening      sockets, connections and worker processes
app            all routes, and what surrounds each of them
access         keys, what they allow, and how often a key may call
operations     what an operation is; `openapi` describes them, and `reference_page` shows that to a person
questions …    the operations of one subject each
page           the files of the web page
dialects       the APIs of OpenAI and Ollama, in `openai_api` and `ollama_api`
mcp_endpoint   the tools of the Model Context Protocol: `mcp_tools`, `mcp_results`
workspaces     the indexes that are served
wire           results, errors and streams as bytes
"""

from quipu.server.components import ServerComponents, ServerOptions
from quipu.server.listening import ServerPlan, serve
from quipu.server.workspaces import Workspaces

__all__ = ["ServerComponents", "ServerOptions", "ServerPlan", "Workspaces", "serve"]
