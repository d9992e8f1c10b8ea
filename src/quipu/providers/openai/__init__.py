"""Any server that speaks OpenAI's HTTP interface: chat, embeddings and rerankers."""
