"""Law 8: what cannot work is told in one message with its remedy, before any document is touched."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quipu.cli.app import run
from quipu.engine.components import check_nothing
from quipu.ingest.llm import LlmExtractor
from quipu.testing.scripted.script import Fault, FaultName, Script, Service
from quipu.testing.server.process import ServerHandle
from quipu.wiring import models
from quipu.wrap.meter import Meter

KEY = "sk-not-this-one-4711"
NOWHERE = "http://127.0.0.1:9/v1"  # the port of a service that discards what it is sent, and is long gone
CHAT = {"QUIPU_LLM": "custom/large", "QUIPU_LLM_KEY": KEY}
VECTORS = {"QUIPU_EMBEDDER": "openai", "QUIPU_EMBEDDER_MODEL": "custom/words", "QUIPU_EMBEDDER_DIMENSION": "64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A setting that cannot work, what the message must name, and what its remedy."""

    environment: dict[str, str]
    message: tuple[str, ...]
    remedy: tuple[str, ...]
    service: Service = field(default_factory=Service)
    faults: tuple[Fault, ...] = ()
    code: int = 1  # 2: the command was used wrongly


REFUSALS = {
    "wrong key": Refused(
        environment=CHAT, service=Service(api_key="sesame"), message=("answered 401",), remedy=("QUIPU_LLM_KEY",)
    ),
    "no key": Refused(
        environment={"QUIPU_LLM": "custom/large"},
        service=Service(api_key="sesame"),
        message=("answered 401",),
        remedy=("Set QUIPU_LLM_KEY",),
    ),
    "a hosted model without a key": Refused(
        environment={"QUIPU_LLM": "openai/gpt-4.1-mini", "QUIPU_LLM_BASE_URL": ""},
        message=("openai/gpt-4.1-mini", "needs a key"),
        remedy=("OPENAI_API_KEY",),
    ),
    "unknown model": Refused(
        environment=CHAT | {"QUIPU_LLM": "custom/lagre"},
        service=Service(models=("small", "large")),
        message=("answered 404", "lagre"),
        remedy=("Did you mean custom/large?",),
    ),
    "a name that is no model": Refused(
        environment=CHAT | {"QUIPU_LLM": "gpt-4.1-mini"},
        message=("'gpt-4.1-mini' is not a model",),
        remedy=("Did you mean openai/gpt-4.1-mini?",),
        code=2,
    ),
    "unreachable host": Refused(
        environment=CHAT | {"QUIPU_LLM_BASE_URL": NOWHERE},
        message=("Nothing answers at 127.0.0.1:9",),
        remedy=("Check the base URL",),
    ),
    "context window too small": Refused(
        environment=CHAT, service=Service(context_window=600), message=("context window",), remedy=("larger",)
    ),
    "an address without its version": Refused(
        environment=CHAT | {"QUIPU_LLM_BASE_URL": "{address}"}, message=("answered 404",), remedy=("forget /v1",)
    ),
    "the address of something else": Refused(
        environment=CHAT,
        faults=(Fault(name=FaultName.NOT_JSON),),
        message=("answered 200",),
        remedy=("not the address of an OpenAI-compatible server",),
    ),
    "no credit": Refused(
        environment=CHAT,
        faults=(Fault(name=FaultName.QUOTA),),
        message=("exceeded your current quota",),
        remedy=("credit",),
    ),
    "wrong key of the embedder": Refused(
        environment=VECTORS | {"QUIPU_EMBEDDER_KEY": KEY},
        service=Service(api_key="sesame"),
        message=("custom/words", "answered 401"),
        remedy=("key",),
    ),
    "unknown model of the embedder": Refused(
        environment=VECTORS,
        service=Service(models=("large",)),
        message=("custom/words", "answered 404"),
        remedy=("large",),
    ),
    "unreachable embedder": Refused(
        environment=VECTORS | {"QUIPU_EMBEDDER_BASE_URL": NOWHERE},
        message=("Nothing answers at 127.0.0.1:9",),
        remedy=("Check the base URL",),
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two documents to work in, without keys in the environment."""
    for name in ("OPENAI_API_KEY", "QUIPU_LLM_KEY", "QUIPU_EMBEDDER_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("polo", "khan"):
        (tmp_path / f"{name}.md").write_text(f"Marco Polo wrote to {name.title()} Smith of the road to Venice.")
    return tmp_path


def refusal(case: Refused, server: ServerHandle, patch: pytest.MonkeyPatch, printed: pytest.CaptureFixture[str]) -> str:
    """Add the documents from the command line; return what is wrong with how that was refused, "" for nothing."""
    server.configure(Script(service=case.service, faults=case.faults))
    urls = {"QUIPU_LLM_BASE_URL": server.base_url, "QUIPU_EMBEDDER_BASE_URL": server.base_url}
    for name, value in {**urls, **case.environment}.items():
        patch.setenv(name, value.format(address=server.address))
    code = run(("--json", "--index", "kb", "add", "polo.md", "khan.md"))
    told = printed.readouterr()
    if code != case.code:
        return f"exit code {code}"
    if told.out:
        return f"a report: {told.out}"
    error = json.loads(told.err)["error"]
    missing = [part for part in case.message if part not in error["message"]]
    missing += [part for part in case.remedy if part not in error["remedy"]]
    if missing or KEY in told.err:
        return f"{missing} is not in {error}"
    assert run(("--json", "--index", "kb", "docs")) in (0, 1)
    listed = printed.readouterr()
    return "" if "polo.md" not in listed.out else f"documents: {listed.out}"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_work_is_refused_before_any_document_is_touched(
    name: str, server: ServerHandle, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(REFUSALS[name], server, monkeypatch, capsys) == ""


@pytest.mark.usefixtures("here")
def test_the_law_fails_where_nothing_is_checked_first(
    server: ServerHandle, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models, "combine_checks", lambda _checks: check_nothing)
    monkeypatch.setattr(LlmExtractor, "check", lambda _extractor: check_nothing(Meter()))
    assert refusal(REFUSALS["wrong key"], server, monkeypatch, capsys)
