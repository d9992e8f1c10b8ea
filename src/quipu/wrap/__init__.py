"""Wrappers of models that work for every provider: retries, limits, costs, kept replies, fallbacks, recordings."""
