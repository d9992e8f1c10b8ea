"""Prompts: what language models are asked, by method."""
