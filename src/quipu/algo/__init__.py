"""Algorithms: numbers in, numbers out; no I/O, no async."""
