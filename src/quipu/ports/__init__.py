"""Ports: Protocols for what adapters provide (stores, vector indexes, model providers, parsers, extractors)."""
