"""Models of any OpenAI-compatible server: chat, embeddings and rerankers."""
