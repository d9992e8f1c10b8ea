"""Benchmarks: data sets, metrics, and what they measure."""
