"""Scripted models: stub models that reply by a script, with chosen latencies and injected faults."""
