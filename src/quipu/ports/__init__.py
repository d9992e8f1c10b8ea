"""What Quipu needs from outside, as Protocols; adapters live in stores, vectors, providers, parse and ingest."""
