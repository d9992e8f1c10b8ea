"""Providers: chat models, embedders, rerankers and tokenizers behind the ports."""
