"""Wrappers for models of every provider: retries, concurrency limits, metering, reply cache, fallbacks, recordings."""
