"""Spans: what a program with OpenTelemetry sees of add and ask, and that others see and pay nothing."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu import sync
from quipu.errors import InvalidInput
from quipu.testing.server import serving
from quipu.wrap.meter import span

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TEXT = "Zephyrine Quillfeather buried the amber casket below the sundial."
QUESTION = "Where did Zephyrine Quillfeather bury the casket?"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Keeps the spans that end."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def _parents(spans: tuple[ReadableSpan, ...]) -> set[tuple[str, str]]:
    name_by_id = {ended.context.span_id: ended.name for ended in spans if ended.context}
    return {(ended.name, name_by_id[ended.parent.span_id] if ended.parent else "") for ended in spans}


def test_add_and_ask_are_spans_with_stages_and_model_calls(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    with (
        serving() as server,
        sync.open(tmp_path / "kb", llm="custom/test", llm_base_url=server.base_url) as kb,
    ):
        kb.add_text(TEXT, id="casket")
        kb.query(QUESTION)
    spans = exporter.get_finished_spans()
    assert _parents(spans) >= {
        ("quipu.add", ""),
        ("quipu.read", "quipu.add"),
        ("quipu.call", "quipu.read"),
        ("quipu.refresh", "quipu.add"),
        ("quipu.ask", ""),
        ("quipu.retrieve", "quipu.ask"),
        ("quipu.generate", "quipu.ask"),
        ("quipu.call", "quipu.generate"),
    }
    attributes = {ended.name: dict(ended.attributes or {}) for ended in spans}
    assert attributes["quipu.add"]["quipu.n_added"] == 1
    assert attributes["quipu.ask"]["quipu.n_passages"] == 1
    assert attributes["quipu.call"]["quipu.stage"] == "answer"
    assert int(str(attributes["quipu.call"]["quipu.input_tokens"])) > 0
    assert "Zephyrine" not in str([ended.to_json() for ended in spans])


def test_a_block_that_fails_ends_its_span_as_failed_without_the_message(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(InvalidInput), span("quipu.ask"):
        raise InvalidInput("Zephyrine is no number.")
    (failed,) = exporter.get_finished_spans()
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert dict(failed.attributes or {}) == {"error.type": "InvalidInput"}
    assert "Zephyrine" not in failed.to_json()


def test_a_program_without_opentelemetry_imports_none(tmp_path: Path) -> None:
    probe = f"""
import sys
from quipu import sync
with sync.open({str(tmp_path / "kb")!r}) as kb:
    kb.add_text("Anna sold the press.")
    kb.query("Who sold the press?")
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
