"""Pretrained models by the libraries that run them, each an extra: sentence-transformers and fastembed."""

from quipu.providers.pretrained.embedder import PretrainedEmbedder
from quipu.providers.pretrained.fastembed import open_fastembed
from quipu.providers.pretrained.sentence_transformers import open_sentence_transformers

__all__ = ["PretrainedEmbedder", "open_fastembed", "open_sentence_transformers"]
