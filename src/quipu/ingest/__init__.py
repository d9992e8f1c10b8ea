"""Facts: from sources to documents, chunks and mentions."""
