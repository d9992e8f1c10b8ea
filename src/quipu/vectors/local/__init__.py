"""Local vectors: a sketch index in process, memory-mapped, derived from the store."""

from quipu.vectors.local.index import LocalVectors

__all__ = ["LocalVectors"]
