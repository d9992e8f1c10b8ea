"""Prompts: one module a prompt."""
