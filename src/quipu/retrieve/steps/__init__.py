"""Moves that several strategies share."""
