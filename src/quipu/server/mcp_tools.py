"""MCP tools: what the client of a language model may ask of an index. They return evidence, in pieces of bounded size.

The protocol comes from the library `mcp`, which is an extra and slow to import: whoever needs this imports it late.
"""

import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from pydantic import Field

import quipu
from quipu.errors import InvalidInput, NotFound, QuipuError, Unavailable
from quipu.model.document import DocumentListing
from quipu.model.query import Filter
from quipu.server.mcp_results import (
    ChangedDocument,
    CitedAnswer,
    DocumentLines,
    DocumentPart,
    EntityFacts,
    EvidencePart,
    IndexForTools,
    PassageReasons,
    SearchHits,
    cited_answer,
    document_line,
    document_part,
    entity_facts,
    passage_reason,
    search_hit,
    source_passage,
    that_fit,
)
from quipu.server.wire import RequestRefused

try:
    from mcp.server.mcpserver import Context, MCPServer, ResourceSecurity
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import ToolAnnotations
except ImportError as error:
    raise Unavailable("MCP is not installed.", remedy="Run pip install 'quipu-rag[mcp]'.") from error

_log = logging.getLogger(__name__)
_MAX_QUESTION_CHARS = 4_000
_N_RELATIONS = 20  # in one result
_N_LISTED = 100  # documents in one result
_NOT_FOUND = "Call `search` for documents on a subject, or `documents` for the ids of all."
_INSTRUCTIONS = """Quipu answers from the documents of one index, with the proof of every statement. \
Call `evidence` to read passages and write the answer yourself, or `ask` for an answer that quotes the documents. \
Call `fetch` for the whole text of a document, `entity` for what the documents say about a name. \
Cite the `url` of what you use. If nothing fits, say that the documents do not answer."""
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False, idempotent_hint=True)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False, idempotent_hint=True)

_Question = Annotated[
    str,
    Field(description="A question in words, as a person would ask it.", min_length=1, max_length=_MAX_QUESTION_CHARS),
]
_Strategy = Annotated[str, Field(description='How to search, as in "mix"; empty: the default, which suits most.')]
_Cursor = Annotated[
    str, Field(description="The `cursor` of the result before, for what follows; empty: from the start.")
]
_AsOf = Annotated[
    str, Field(description='The date for which to answer, as in "2019" or "2019-03-31"; empty: as of now.')
]

# Opens the index that a call may use; raises ToolError where its sender may use none.
IndexOpener = Callable[[Context[Any, Any]], AbstractAsyncContextManager[IndexForTools]]


def session_manager(
    open_index: IndexOpener, *, may_write: bool, without_paths: Callable[[str], str], max_body_bytes: int
) -> StreamableHTTPSessionManager:
    """Return what answers over HTTP, without sessions. The server around it has checked Host, Origin and key."""
    server = tool_server(open_index, may_write=may_write, without_paths=without_paths)
    server.streamable_http_app(
        stateless_http=True,
        max_request_body_size=max_body_bytes,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return server.session_manager


def tool_server(
    open_index: IndexOpener, *, may_write: bool, without_paths: Callable[[str], str] = str
) -> MCPServer[Any]:
    """Return an MCP server with the tools of an index; those that change it only if `may_write`.

    `without_paths` takes folders of the server out of messages.
    """
    server = _silent_server()
    tools = _IndexTools(open_index, without_paths)
    for read in (tools.search, tools.fetch, tools.evidence, tools.ask, tools.entity, tools.documents, tools.explain):
        server.add_tool(read, description=inspect.getdoc(read), annotations=_READS)
    if may_write:
        server.add_tool(tools.change, description=inspect.getdoc(tools.change), annotations=_CHANGES)
    for kind, parameters, content in (
        ("documents", "{?start,end}", tools.document_resource),
        ("entities", "", tools.entity_resource),
    ):
        server.resource(
            f"quipu://{kind}/{{id}}{parameters}",
            name=kind,
            description=f"One of the {kind} of the index, by its percent-encoded id or name.",
            mime_type="text/plain",
            security=ResourceSecurity(exempt_params=frozenset({"id"})),  # ids are looked up, never opened as paths
        )(content)
    return server


def _silent_server() -> MCPServer[Any]:
    """Return a server without tools. It leaves the log of the process as it is.

    The library would log to stderr what its tools say about a call, with the ids in it, unless a log is set up.
    """
    root, configured = logging.getLogger(), logging.NullHandler()
    root.addHandler(configured)
    try:
        return MCPServer("quipu", title="Quipu", instructions=_INSTRUCTIONS, version=quipu.__version__)
    finally:
        root.removeHandler(configured)


class _IndexTools:
    """The tools. A docstring is what a model reads to choose a tool, so it says when to use it."""

    def __init__(self, open_index: IndexOpener, without_paths: Callable[[str], str]) -> None:
        self._open_index = open_index
        self._without_paths = without_paths

    async def search(
        self,
        query: _Question,
        ctx: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=50, description="How many documents at most.")] = 10,
        as_of: _AsOf = "",
    ) -> SearchHits:
        """Find documents by a question or by words. Returns ids, titles and the best passage of each.

        Use it to see which documents there are on a subject; use `evidence` to answer a question.
        Example: {"query": "How was Linear B deciphered?"}
        """
        async with self._index(ctx) as index:
            passages = await index.kb.passages(query, **_options(as_of=as_of))
            best = {passage.document.id: passage for passage in reversed(passages)}
            ranked = sorted(best.values(), key=lambda passage: (-passage.score, passage.document.id))[:limit]
            return SearchHits(results=tuple(that_fit([search_hit(index.link, passage) for passage in ranked])))

    async def fetch(
        self,
        id: Annotated[str, Field(description="The id of a document, as `search` returns it.")],
        ctx: Context[Any, Any],
        cursor: Annotated[
            str, Field(description="The `cursor` of the part before, or the `start` of a passage; empty: the start.")
        ] = "",
        as_of: _AsOf = "",
    ) -> DocumentPart:
        """Return the text of a document by its id, about 20,000 characters at a time; `cursor` asks for the rest.

        Use it to read a document as a whole, or what stands before and after a passage.
        Example: {"id": "linear-b.md"}
        """
        async with self._index(ctx) as index:
            text = await index.kb.text(id, as_of=as_of)
            (document,) = await index.kb.documents(ids=[id], allowed=Filter(as_of=as_of))
            return document_part(document, index.link(id), text, _offset(cursor, len(text)))

    async def evidence(
        self,
        question: _Question,
        ctx: Context[Any, Any],
        strategy: _Strategy = "",
        cursor: _Cursor = "",
        as_of: _AsOf = "",
    ) -> EvidencePart:
        """Return the passages of the documents that belong to a question, best first, to write an answer from.

        Use it whenever you answer from the documents: read the passages, then cite their `url`.
        Example: {"question": "Who built on the work of Alice Kober?"}
        """
        async with self._index(ctx) as index:
            passages = await index.kb.passages(question, **_options(strategy=strategy, as_of=as_of))
            start = _offset(cursor, len(passages))
            fitting = that_fit([source_passage(index.link, passage) for passage in passages[start:]])
            end = start + len(fitting)
            return EvidencePart(passages=tuple(fitting), cursor=str(end) if end < len(passages) else "")

    async def ask(
        self, question: _Question, ctx: Context[Any, Any], strategy: _Strategy = "", as_of: _AsOf = ""
    ) -> CitedAnswer:
        """Answer a question from the documents, with citations. Without a language model the answer is quoted.

        Use it for a quick answer with proof. If `is_supported` is false, the documents do not answer the question.
        Example: {"question": "When was Linear B read?"}
        """
        async with self._index(ctx) as index:
            return cited_answer(index.link, await index.kb.query(question, **_options(strategy=strategy, as_of=as_of)))

    async def entity(
        self,
        name: Annotated[str, Field(description="A name as the documents write it, or another name of the same.")],
        ctx: Context[Any, Any],
        cursor: _Cursor = "",
        as_of: _AsOf = "",
    ) -> EntityFacts:
        """Return what the documents say about a person, place, organization or thing: description and relations.

        Use it when a question is about one name. For an unknown name, the error suggests similar ones if there are any.
        Example: {"name": "Alice Kober"}
        """
        async with self._index(ctx) as index:
            page = await index.kb.neighbours(name, k=_N_RELATIONS, after=cursor, as_of=as_of)
            return entity_facts(page, await index.kb.entity(page.entity.key, as_of=as_of))

    async def documents(
        self,
        ctx: Context[Any, Any],
        prefix: Annotated[str, Field(description="How the id, title or source begins; empty: all.")] = "",
        cursor: _Cursor = "",
        as_of: _AsOf = "",
    ) -> DocumentLines:
        """List the documents of the index by id, at most 100 at a time; `cursor` asks for those that follow.

        Use it to see what the index is about, or to find the id of a document whose title you know.
        Example: {"prefix": "notes/"}
        """
        async with self._index(ctx) as index:
            listing = DocumentListing(prefix=prefix, k=_N_LISTED, after=cursor)
            listed = await index.kb.documents(listing, Filter(as_of=as_of))
            lines = that_fit([document_line(index.link, document) for document in listed])
            is_last = len(lines) == len(listed) < _N_LISTED
            return DocumentLines(
                documents=tuple(lines), cursor="" if is_last or not lines else listing.cursor(listed[len(lines) - 1])
            )

    async def explain(
        self,
        question: _Question,
        ctx: Context[Any, Any],
        strategy: _Strategy = "",
        rank: Annotated[int, Field(ge=0, le=1_000, description="The rank of one passage; 0: the first three.")] = 0,
        as_of: _AsOf = "",
    ) -> PassageReasons:
        """Say why passages are in the evidence for a question: the words and names they were reached by, and how.

        Use it when a person asks where an answer comes from, or when the evidence looks wrong.
        Example: {"question": "Who built on the work of Alice Kober?", "rank": 1}
        """
        async with self._index(ctx) as index:
            explanation = await index.kb.explain(
                question, rank=rank or None, **_options(strategy=strategy, as_of=as_of)
            )
            reasons = that_fit([passage_reason(index.link, chunk) for chunk in explanation.chunks])
            return PassageReasons(passages=tuple(reasons))

    async def change(
        self,
        id: Annotated[str, Field(description="The id of the document, as in notes/2026.md.", min_length=1)],
        ctx: Context[Any, Any],
        text: Annotated[str, Field(description="The whole new text, as Markdown.")] = "",
        title: Annotated[str, Field(description="The title; empty: the first heading of the text.")] = "",
        remove: Annotated[bool, Field(description="Remove the document. Send no text then.")] = False,
    ) -> ChangedDocument:
        """Add a document, replace it, or remove it with all that only it says. The index keeps no copy of what goes.

        Use it only when a person asks for the change.
        Example: {"id": "notes/kober.md", "text": "# Alice Kober\\n\\nAlice Kober studied Linear B."}
        """
        async with self._index(ctx) as index:
            index.check_write()
            if bool(text.strip()) == remove:
                raise InvalidInput(
                    f"It is not clear what is to be done with {id[:200]!r}.",
                    remedy="Send its whole text to add or replace it, or `remove`: true without a text.",
                )
            if remove:
                await index.kb.remove([id])
                return ChangedDocument(id=id, outcome="removed")
            result = await index.kb.add_text(text, id=id, title=title)
            if result.failed or result.partial:
                raise ToolError((*result.failed, *result.partial)[0].error)
            return ChangedDocument(
                id=id, outcome="unchanged" if result.n_unchanged else "replaced" if result.n_updated else "added"
            )

    async def document_resource(
        self,
        id: str,
        ctx: Context[Any, Any],
        start: Annotated[int, Field(ge=0)] = 0,
        end: Annotated[int | None, Field(ge=0)] = None,
    ) -> str:
        """Return the text of a document, or its characters [start, end)."""
        async with self._resource_errors(), self._index(ctx) as index:
            return (await index.kb.text(id))[start:end]

    async def entity_resource(self, id: str, ctx: Context[Any, Any]) -> str:
        """Return what the documents say about a name."""
        async with self._resource_errors(), self._index(ctx) as index:
            details = (await index.kb.entity(id)).entity
            return f"{details.name} ({details.type})\n\n{details.description}"

    @asynccontextmanager
    async def _index(self, ctx: Context[Any, Any]) -> AsyncIterator[IndexForTools]:
        """Open the index of a call; what is wrong with the call becomes a message that the model reads."""
        try:
            async with self._open_index(ctx) as index:
                yield index
        except ToolError:
            raise
        except (QuipuError, RequestRefused) as error:
            # A model cannot run the commands that an error about an unknown name suggests.
            is_command = isinstance(error, NotFound) and "`quipu " in error.remedy
            remedy = _NOT_FOUND if is_command else error.remedy
            raise ToolError(self._without_paths(f"{error.message} {remedy}".strip())) from error
        except Exception as error:
            _log.error("a tool of MCP failed", exc_info=error)
            raise ToolError("Quipu failed. Its log tells more.") from None

    @asynccontextmanager
    async def _resource_errors(self) -> AsyncIterator[None]:
        try:
            yield
        except ToolError as error:
            kind = ResourceNotFoundError if isinstance(error.__cause__, NotFound) else ResourceError
            raise kind(str(error)) from error


def _options(**named: str) -> dict[str, Any]:
    return {name: value for name, value in named.items() if value}


def _offset(cursor: str, length: int) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit() and int(cursor) <= length):
        raise InvalidInput(f"{cursor[:40]!r} is not a cursor of this result.", remedy="Use the `cursor` it returned.")
    return int(cursor or 0)
