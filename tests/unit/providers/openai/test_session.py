"""Connections: made late, once for each event loop, and never through a proxy to this machine."""

import subprocess
import sys

import pytest

from quipu.providers.openai.client import proxy_for
from quipu.providers.openai.endpoint import Endpoint
from tests.unit.providers.openai.raw import endpoint

_OFFLINE = """
import sys
from quipu.providers.litellm import LiteLlm
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.chat import OpenAIChat
from quipu.providers.openai.embeddings import OpenAIEmbedder
from quipu.providers.openai.endpoint import Endpoint
from quipu.providers.openai.probe import probe_chat
from quipu.providers.openai.rerank import HttpReranker
where = Endpoint(provider=PROVIDERS["ollama"])
OpenAIChat(where, "m", count_tokens=len), HttpReranker(where, "m", count_tokens=len)
assert "aiohttp" not in sys.modules , "too early"
"""


def test_nothing_of_http_is_imported_before_the_first_request() -> None:
    ran = subprocess.run([sys.executable, "-c", _OFFLINE], capture_output=True, text=True, check=False)
    assert ran.stderr == ""


def _endpoint(url: str) -> Endpoint:
    return endpoint(url)


def test_the_proxy_of_the_system_is_used_but_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for(_endpoint("http://outside.example/v1")) == "http://proxy.example:3128"
    assert proxy_for(_endpoint("http://inside.example:8000/v1")) is None
    assert proxy_for(_endpoint("http://localhost:11434/v1")) is None
    assert proxy_for(_endpoint("http://[::1]:11434/v1")) is None
