"""Derivations: pure functions of facts, brought up to date by refresh."""
