"""A scripted OpenAI-compatible server: a real process on loopback that speaks HTTP and server-sent events."""

from quipu.testing.server.process import ServerHandle, serving

__all__ = ["ServerHandle", "serving"]
