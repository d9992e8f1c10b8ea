"""Quipu: a graph-RAG engine whose index is a pure function of its documents."""
