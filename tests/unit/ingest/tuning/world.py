"""Chunks for tests of tuning."""

from quipu.model.graph import Chunk
from quipu.model.ids import digest


def chunk(text: str, document: str = "a.md", *, title: str = "", ordinal: int = 0, n_tokens: int = 0) -> Chunk:
    """Return a chunk of this text; by default it counts as a long one."""
    return Chunk(
        id=digest(document, text)[:16],
        document_id=document,
        title=title,
        ordinal=ordinal,
        text=text,
        start=0,
        end=len(text),
        n_tokens=n_tokens or max(100, len(text) // 4),
        text_hash=digest(text),
    )


def chunks(n_documents: int, n_each: int) -> list[Chunk]:
    """Return chunks that have hardly a word in common."""
    return [
        chunk(" ".join(f"word{digest(str(d), str(c), str(w))[:8]}" for w in range(12)), f"d{d}", ordinal=c)
        for d in range(n_documents)
        for c in range(n_each)
    ]
