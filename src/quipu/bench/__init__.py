"""Benchmarks: data sets, metrics and measurements of retrieval."""
