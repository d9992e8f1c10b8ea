"""Providers: models behind the ports, found by name."""
