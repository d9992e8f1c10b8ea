"""Documents: what an index contains, and taking documents out."""

from quipu.engine import Quipu
from quipu.model.delta import ChunkFacts
from quipu.model.document import Document
from quipu.model.results import DocumentDetails, RemoveResult
from quipu.server.access import Permission
from quipu.server.operations import operation, operations_of
from quipu.server.questions import WORKSPACE


@operation("GET", f"{WORKSPACE}/documents", Permission.READ)
async def list_documents(kb: Quipu) -> list[Document]:
    """List the documents with their status."""
    return await kb.documents()


@operation("GET", f"{WORKSPACE}/documents/{{document:path}}", Permission.READ)
async def show_document(kb: Quipu, document: str) -> DocumentDetails:
    """Return a document with its chunks."""
    return await kb.document(document)


@operation("DELETE", f"{WORKSPACE}/documents/{{document:path}}", Permission.WRITE)
async def remove_document(kb: Quipu, document: str) -> RemoveResult:
    """Remove a document with all facts that no other document states."""
    return await kb.remove([document])


@operation("GET", f"{WORKSPACE}/chunks/{{chunk}}", Permission.READ)
async def show_chunk(kb: Quipu, chunk: str) -> ChunkFacts:
    """Return a chunk with what it mentions."""
    return await kb.chunk(chunk)


OPERATIONS = operations_of(list_documents, show_document, remove_document, show_chunk)
