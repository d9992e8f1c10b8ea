"""Documents: what an index contains, putting documents in, and taking them out."""

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import quote

from pydantic import Field
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from quipu.engine import Quipu
from quipu.errors import InvalidInput
from quipu.ingest.sources import checked_id, checked_metadata, media_type_of, text_source
from quipu.model.chat import Role
from quipu.model.delta import ChunkFacts
from quipu.model.document import (
    Document,
    DocumentListing,
    DocumentOrder,
    DocumentStatus,
    Metadata,
    QuotePlace,
    SourceDocument,
)
from quipu.model.query import Filter
from quipu.model.results import ChunkPage, DocumentDetails, EnqueuedDocuments, RemovalPreview, RemoveResult
from quipu.model.usage import Estimate
from quipu.parse import FILE_TYPES, IMAGE_TYPE_BY_SUFFIX
from quipu.ports.ingest import FileTypes
from quipu.server.access import Permission
from quipu.server.job_process import JobProcess, LargeFile
from quipu.server.job_runners import ADD, JobStatus
from quipu.server.jobs import start_job
from quipu.server.operations import Call, QueryParameters, WireBody, limited, once, operation, operations_of
from quipu.server.questions import WORKSPACE, AsOf
from quipu.server.wire import RequestRefused, download, json_bytes

PageQuote = Annotated[str, Field(max_length=4_000, description="The quote to mark, as in a citation.")]

LARGE_BYTES = 8 << 20  # a file above it is put into the queue by the job process
_MEMORY_BYTES = 1 << 20  # of a file that its type follows from
_MAX_FILES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedDocuments:
    """Documents that were put into the queue, by id, and the job that reads them; it is null if nothing changed.

    `unchanged` documents are in the index already. `unreadable` are (name, error with remedy).
    """

    job: JobStatus | None
    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """A page of documents; `cursor` asks for the next one, "" if this is the last."""

    documents: tuple[Document, ...]
    cursor: str


class NewText(WireBody):
    """A text to add as a document. Without an id, its id is made from its content."""

    text: str
    id: str | None = None
    title: str = ""
    metadata: dict[str, str | int | float | bool | tuple[str, ...] | None] = Field(default_factory=dict)
    media_type: str = "text/markdown"


class ListingParameters(QueryParameters):
    """Which documents to list. `prefix` is how the id, the title or the source begins."""

    status: tuple[DocumentStatus, ...] | DocumentStatus = ()
    prefix: str = ""
    order: DocumentOrder = DocumentOrder.ID
    k: int = Field(100, ge=1, le=1_000)
    cursor: str = ""

    @property
    def listing(self) -> DocumentListing:
        """The same for the engine."""
        statuses = (self.status,) if isinstance(self.status, DocumentStatus) else self.status
        return DocumentListing(statuses=statuses, prefix=self.prefix, order=self.order, k=self.k, after=self.cursor)


@operation("GET", f"{WORKSPACE}/documents", Permission.READ)
async def list_documents(kb: Quipu, *, page: ListingParameters, as_of: AsOf = "") -> DocumentPage:
    """List documents page by page, with their status; queued and failed ones too, unless a date is given.

    `prefix` is how the id, the title or the source begins. `cursor` is that of the page before.
    """
    documents = await kb.documents(page.listing, Filter(as_of=as_of))
    cursor = page.listing.cursor(documents[-1]) if len(documents) == page.k else ""
    return DocumentPage(documents=tuple(documents), cursor=cursor)


@operation("POST", f"{WORKSPACE}/texts", Permission.WRITE, status=202)
async def add_text(kb: Quipu, call: Call, body: NewText) -> Response:
    """Add a text. The reply comes at once, with a job; a text with the id of a document replaces it."""
    source = text_source(body.text, id=body.id, title=body.title, metadata=body.metadata, media_type=body.media_type)
    return await _add(kb, call, [source], ())


@operation(
    "POST",
    f"{WORKSPACE}/documents",
    Permission.WRITE,
    status=202,
    reads_body=True,
    body_media_type="multipart/form-data",
)
async def upload_documents(kb: Quipu, call: Call) -> Response:
    """Upload files, as multipart/form-data: any number of `files`, and `metadata` for all of them as a JSON object.

    The name of a file is its id, with the folders that the client sends. A file with the id of a document replaces it.
    """
    sources, unreadable = await _uploaded(call)
    return await _add(kb, call, sources, unreadable)


@operation(
    "POST",
    f"{WORKSPACE}/documents/estimate",
    Permission.WRITE,
    reads_body=True,
    body_media_type="multipart/form-data",
)
async def estimate_documents(kb: Quipu, call: Call) -> Estimate:
    """Return what uploading these files would cost with a language model; nothing is added, and nothing is paid for.

    The body is that of an upload.
    """
    sources, unreadable = await _uploaded(call)
    estimate = await kb.estimate(*sources)
    return replace(estimate, n_unreadable=estimate.n_unreadable + len(unreadable))


@operation(
    "PUT",
    f"{WORKSPACE}/documents/{{document:path}}",
    Permission.WRITE,
    status=202,
    reads_body=True,
    body_media_type="application/octet-stream",
)
async def put_document(kb: Quipu, call: Call, document: str, *, title: str = "", metadata: str = "") -> Response:
    """Add or replace a document by its id. The body is the file; its type follows from the id, else from its bytes.

    `metadata` is a JSON object.
    """
    values, process = _metadata(metadata), call.server.job_process
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body"
        await _write_body(call, path)
        if process is not None and path.stat().st_size > LARGE_BYTES:
            large = await asyncio.to_thread(_large_file, document, path, values, title, _file_types(call))
            return await _add_large(kb, call, large, process)
        content = await asyncio.to_thread(path.read_bytes)
    source = await asyncio.to_thread(_source, document, content, values, title, _file_types(call))
    return await _add(kb, call, [source], ())


async def _write_body(call: Call, path: Path) -> None:
    with await asyncio.to_thread(path.open, "wb") as file:
        async for part in _limited(call).stream():
            await asyncio.to_thread(file.write, part)


@operation("GET", f"{WORKSPACE}/documents/{{document:path}}", Permission.READ)
async def show_document(kb: Quipu, document: str, *, as_of: AsOf = "") -> DocumentDetails:
    """Return a document with its chunks."""
    return await kb.document(document, as_of=as_of)


@operation("GET", f"{WORKSPACE}/texts/{{document:path}}", Permission.READ, media_type="text/plain")
async def show_text(kb: Quipu, document: str, *, as_of: AsOf = "") -> Response:
    """Return the whole text of a document: chunks and citations stand in it at their offsets, in code points."""
    text = await kb.text(document, as_of=as_of)
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")


@operation("GET", f"{WORKSPACE}/originals/{{document:path}}", Permission.READ, media_type="application/octet-stream")
async def download_original(kb: Quipu, document: str) -> Response:
    """Download the file that a document was read from. A browser saves it, and never opens it as a page.

    A picture is sent with its media type, so that a page can show it.
    """
    name = quote(PurePosixPath(document).name)
    media_types = [row.media_type for row in await kb.documents(ids=[document])]
    is_picture = bool(media_types) and media_types[0] in IMAGE_TYPE_BY_SUFFIX.values()
    media_type = media_types[0] if is_picture else "application/octet-stream"
    return await download(kb.original(document), media_type, f"attachment; filename*=UTF-8''{name}")


@operation("GET", f"{WORKSPACE}/pages/{{document:path}}", Permission.READ, media_type="image/png")
async def show_page(
    kb: Quipu, document: str, *, page: Annotated[int, Field(ge=1)] = 1, quote: PageQuote = ""
) -> Response:
    """Return a page of a PDF as a picture in which a quote is marked."""
    picture = await kb.page_picture(document, page, quote)
    return Response(picture.png, media_type="image/png")


@operation("GET", f"{WORKSPACE}/boxes/{{document:path}}", Permission.READ)
async def show_boxes(
    kb: Quipu, document: str, *, page: Annotated[int, Field(ge=1)] = 1, quote: PageQuote = ""
) -> QuotePlace:
    """Return where on a page of a PDF the lines of a quote stand."""
    return (await kb.page_picture(document, page, quote)).place


@operation("DELETE", f"{WORKSPACE}/documents/{{document:path}}", Permission.WRITE)
async def remove_document(kb: Quipu, document: str) -> RemoveResult:
    """Remove a document with all facts that no other document states."""
    return await kb.remove([document])


@operation("GET", f"{WORKSPACE}/removal", Permission.READ)
async def preview_removal(
    kb: Quipu, *, document: tuple[str, ...] | str, k: Annotated[int, Field(ge=0, le=1_000)] = 50
) -> RemovalPreview:
    """Return what removing these documents would take away; nothing is removed."""
    return await kb.preview_removal((document,) if isinstance(document, str) else document, k=k)


@operation("GET", f"{WORKSPACE}/chunks", Permission.READ)
async def list_chunks(
    kb: Quipu, *, document: str, k: Annotated[int, Field(ge=1, le=1_000)] = 50, cursor: str = "", as_of: AsOf = ""
) -> ChunkPage:
    """List the chunks of a document page by page, in order. `cursor` is that of the page before."""
    return await kb.chunks(document, k=k, after=cursor, as_of=as_of)


@operation("GET", f"{WORKSPACE}/chunks/{{chunk}}", Permission.READ)
async def show_chunk(kb: Quipu, chunk: str) -> ChunkFacts:
    """Return a chunk with what it mentions."""
    return await kb.chunk(chunk)


async def _uploaded(call: Call) -> tuple[list[SourceDocument], list[tuple[str, str]]]:
    """Return the files of an upload as documents, and (name, error) of those that cannot be one."""
    sources: list[SourceDocument] = []
    unreadable: list[tuple[str, str]] = []
    file_types = _file_types(call)
    kind, form_options = parse_options_header(call.request.headers.get("content-type"))
    if kind == b"multipart/form-data" and not form_options.get(b"boundary"):
        raise RequestRefused(400, "The Content-Type of the form names no boundary.", remedy="Send a form with files.")
    try:
        async with _limited(call).form(max_files=_MAX_FILES, max_fields=10) as form:
            metadata = _metadata(form.get("metadata"))
            files = [part for name, part in form.multi_items() if name == "files" and isinstance(part, UploadFile)]
            for file in files:
                name = _safe_name(file.filename or "")
                try:
                    sources.append(await asyncio.to_thread(_source, name, await file.read(), metadata, "", file_types))
                except InvalidInput as error:
                    unreadable.append((name, str(error)))
    except HTTPException as error:  # starlette's, for a form that it cannot read
        message = f"The body cannot be read as multipart/form-data: {error.detail}"
        raise RequestRefused(400, message, remedy=f"Send a form with at most {_MAX_FILES:,} files.") from None
    if not files:
        raise InvalidInput("There are no files.", remedy="Send them as parts named `files`.")
    return sources, unreadable


async def _add(
    kb: Quipu, call: Call, sources: Sequence[SourceDocument], unreadable: Sequence[tuple[str, str]]
) -> Response:
    """Put documents into the queue, once for each Idempotency-Key, and return the reply."""
    return await once(call, _digest(sources, unreadable), lambda: _enqueue(kb, call, sources, unreadable))


async def _add_large(kb: Quipu, call: Call, file: LargeFile, process: JobProcess) -> Response:
    """Put a file into the queue as `_add`, by another process: this one never holds it whole."""
    index = call.server.workspaces.settings(call.workspace).folder
    assert index is not None  # a server has indexes in folders

    async def enqueue() -> Response:
        return await _accepted(kb, call, await process.enqueue(index, file), ())

    with await asyncio.to_thread(Path(file.path).open, "rb") as content:
        digest = (await asyncio.to_thread(hashlib.file_digest, content, "sha256")).hexdigest()
    head = json.dumps([file.id, file.title, dict(file.metadata), file.media_type, digest])
    return await once(call, hashlib.sha256(head.encode()).hexdigest(), enqueue)


async def _enqueue(
    kb: Quipu, call: Call, sources: Sequence[SourceDocument], unreadable: Sequence[tuple[str, str]]
) -> Response:
    return await _accepted(kb, call, await kb.enqueue(*sources), unreadable)


async def _accepted(
    kb: Quipu, call: Call, enqueued: EnqueuedDocuments, unreadable: Sequence[tuple[str, str]]
) -> Response:
    """Return the reply for documents that are in the queue, and begin their job."""
    names = (*enqueued.added, *enqueued.updated)
    result = AddedDocuments(
        job=await start_job(kb, call, ADD, names) if names else None,
        added=enqueued.added,
        updated=enqueued.updated,
        unchanged=enqueued.unchanged,
        unreadable=(*unreadable, *enqueued.unreadable),
    )
    return Response(json_bytes(result), 202, media_type="application/json")


def _limited(call: Call) -> Request:
    """Return the request of a call with a body as large as an upload may be."""
    remedy = "Send fewer files, or raise --max-upload."
    return limited(call.request, call.server.options.max_upload_bytes, remedy)


def _large_file(name: str, path: Path, metadata: Metadata, title: str, file_types: FileTypes) -> LargeFile:
    """Return a file as a document; its type follows from its name and its first bytes. Raises as `_source`."""
    with path.open("rb") as file:
        media_type = media_type_of(PurePosixPath(checked_id(name)), file.read(_MEMORY_BYTES), file_types)
    return LargeFile(path=str(path), id=name, title=title, source=name, media_type=media_type, metadata=dict(metadata))


def _source(name: str, content: bytes, metadata: Metadata, title: str, file_types: FileTypes) -> SourceDocument:
    """Return a file as a document. Raises InvalidInput for a name that cannot be an id, or a type that is not read."""
    media_type = media_type_of(PurePosixPath(checked_id(name)), content, file_types)
    return SourceDocument(
        id=name, content=content, source=name, media_type=media_type, title=title, metadata=dict(metadata)
    )


def _file_types(call: Call) -> FileTypes:
    """Return what files can be read in a workspace: pictures only with a model for them."""
    reads_pictures = call.server.workspaces.settings(call.workspace).model_of(Role.VISION) is not None
    return FILE_TYPES.with_suffixes(IMAGE_TYPE_BY_SUFFIX) if reads_pictures else FILE_TYPES


def _safe_name(name: str) -> str:
    """Return the name of an uploaded file as an id: a path without a drive, a root, and steps upwards."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return "/".join(part for part in parts if not part.endswith(":"))


def _metadata(text: object) -> Metadata:
    """Return metadata that came as JSON text; none for no text."""
    if not text:
        return {}
    try:
        values = json.loads(str(text))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InvalidInput("The metadata is not a JSON object.", remedy='Write it as in {"author": "Polo"}.')
    return checked_metadata(
        {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    )


def _digest(sources: Sequence[SourceDocument], unreadable: Sequence[tuple[str, str]]) -> str:
    digest = hashlib.sha256(json.dumps(unreadable).encode())
    for source in sources:
        digest.update(json.dumps([source.id, source.title, dict(source.metadata), source.media_type]).encode())
        digest.update(hashlib.sha256(source.content).digest())
    return digest.hexdigest()


OPERATIONS = operations_of(
    list_documents,
    add_text,
    upload_documents,
    estimate_documents,
    put_document,
    show_document,
    show_text,
    download_original,
    show_page,
    show_boxes,
    remove_document,
    preview_removal,
    list_chunks,
    show_chunk,
)
