"""`quipu doctor` on models: one small call to each, what it showed, and what to change."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quipu.stores.postgres.backend import PostgresBackend
from quipu.testing.scripted.script import RequestKind, Script, Service
from quipu.testing.server import serving
from quipu.testing.server.process import ServerHandle
from tests.postgres import PostgresIndexes
from tests.unit.cli.conftest import Cli, FakeEngine

KEY = "sesame-of-the-server"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerHandle]:
    """Run a server that wants a key and lists its models."""
    service = Service(models=("small",), api_key=KEY, context_window=32_000, dimension=64)
    with serving(Script(service=service)) as running:
        yield running


def _checks(cli: Cli, **settings: str) -> dict[str, dict[str, Any]]:
    env = {f"QUIPU_{name.upper()}": value for name, value in settings.items()}
    return {check["name"]: check for check in cli("doctor", "--json", env=env).json}


def test_without_a_model_it_says_so_in_one_line(cli: Cli) -> None:
    checks = _checks(cli)
    assert checks["language model"]["outcome"] == "ok"
    assert "none is set: local rules read" in checks["language model"]["detail"]
    assert "QUIPU_LLM=" in checks["language model"]["remedy"]
    assert "secrets" not in checks


def test_each_model_is_asked_once_and_told_of(cli: Cli, server: ServerHandle, tmp_path: Path) -> None:
    (tmp_path / "quipu.toml").write_text(
        f'llm = "openai/small"\nllm_base_url = "{server.base_url}"\n'
        f'embedder = "openai"\nembedder_model = "custom/small"\nembedder_base_url = "{server.base_url}"\n'
        f'reranker = "jina/small"\nreranker_base_url = "{server.base_url}"\n'
    )
    server.reset()
    checks = _checks(cli, llm_key=KEY, embedder_key=KEY, reranker_key=KEY)
    chat = checks["all work"]
    assert chat["outcome"] == "ok"
    for said in (
        "openai/small at 127.0.0.1:",
        "answered in",
        "JSON by a schema",
        "32,000",
        "environment QUIPU_LLM_KEY",
    ):
        assert said in chat["detail"]
    assert "64 numbers a vector" in checks["embedder"]["detail"]
    assert checks["reranker"]["outcome"] == "ok"
    assert checks["self-test"]["outcome"] == "ok"
    n_asked = {kind: each.n_completed for kind, each in server.stats().by_kind.items() if each.n_completed}
    assert n_asked.pop(RequestKind.EMBED) <= 2  # the dimension of an unknown model, then the probe
    assert n_asked == {RequestKind.OTHER: 1, RequestKind.RERANK: 1}
    assert KEY not in str(checks)


def test_roles_with_models_of_their_own_are_asked_apart(cli: Cli, server: ServerHandle, tmp_path: Path) -> None:
    (tmp_path / "quipu.toml").write_text(
        f'llm = "custom/small"\nllm_base_url = "{server.base_url}"\n'
        f'[role.answer]\nllm = "custom/large"\nllm_base_url = "{NOWHERE}"\nfallback = "custom/small"\n'
    )
    checks = _checks(cli, llm_key=KEY)
    assert checks["extract, keywords, summarise, report, answer (fallback), judge"]["outcome"] == "ok"
    assert checks["answer"]["outcome"] == "failed"
    assert "Nothing answers" in checks["answer"]["detail"]


def test_a_wrong_key_fails_with_where_to_set_it_and_ends_with_1(cli: Cli, server: ServerHandle) -> None:
    wrong = "sk-wrong-and-not-to-be-shown"
    env = {"QUIPU_LLM": "openai/small", "QUIPU_LLM_BASE_URL": server.base_url, "QUIPU_LLM_KEY": wrong}
    ran = cli("doctor", "--json", env=env)
    assert ran.code == 1
    (failed,) = [check for check in ran.json if check["outcome"] == "failed"]
    assert "Set QUIPU_LLM_KEY to a key of 127.0.0.1:" in failed["remedy"]
    assert "OPENAI_API_KEY is sent only to api.openai.com." in failed["remedy"]
    assert wrong not in ran.out


def test_a_model_that_is_none_is_told_of_among_the_other_checks(cli: Cli) -> None:
    checks = _checks(cli, llm="gpt-4o")
    assert checks["language model"]["outcome"] == "failed"
    assert "Did you mean openai/gpt-4o?" in checks["language model"]["remedy"]
    assert checks["space"]["outcome"] == "ok"


def test_a_model_without_a_price_is_a_warning_where_the_budget_is_money(cli: Cli, server: ServerHandle) -> None:
    checks = _checks(cli, llm="custom/small", llm_base_url=server.base_url, llm_key=KEY, budget="5.00")
    chat = checks["all work"]
    assert chat["outcome"] == "warning"
    assert "[[price]]" in chat["remedy"]


def test_the_self_test_reads_by_local_rules_whatever_is_set(cli: Cli, engine: FakeEngine) -> None:
    _checks(cli, llm="custom/small", llm_base_url=NOWHERE, embedder="openai", embedder_model="custom/small")
    # The last opened is the index itself; the settings of the self-test are those with a folder of their own.
    assert [call for call in engine.calls if call[0] == "add_text"]
    assert engine.settings is not None
    assert (engine.settings.llm, engine.settings.embedder, engine.settings.reranker) == (None, "wordllama", None)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are POSIX's")
@pytest.mark.parametrize(("mode", "outcome"), [(0o600, "ok"), (0o640, "warning"), (0o604, "warning")])
def test_secrets_that_others_can_read_are_a_warning(cli: Cli, tmp_path: Path, mode: int, outcome: str) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('openai = "sk-secret"\n')
    secrets.chmod(mode)
    check = _checks(cli)["secrets"]
    assert check["outcome"] == outcome
    assert os.fspath("secrets.toml") in check["detail"]
    assert "sk-secret" not in str(check)


def test_every_extra_that_a_setting_may_need_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ray", "qdrant_client"):
        monkeypatch.setitem(sys.modules, name, None)
    detail = _checks(cli)["extras"]["detail"]
    assert {"ray", "qdrant"} <= set(detail.partition("not installed")[2].replace(",", " ").split())


def test_a_grouping_whose_library_is_missing_is_told_with_its_remedy_and_fails_nothing_else(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "hierarchy" not in _checks(cli)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    checks = _checks(cli, hierarchy_grouping="mixture")
    assert "scikit-learn is not installed" in checks["hierarchy"]["detail"]
    assert "pip install 'quipu-rag[mixture]'" in checks["hierarchy"]["remedy"]
    assert [name for name, check in checks.items() if check["outcome"] == "failed"] == ["hierarchy"]


def test_a_database_is_checked_beside_its_index(cli: Cli, postgres: PostgresIndexes) -> None:
    checks = _checks(cli, index=postgres.server.address("doctor"))
    assert checks["database"]["outcome"] == "ok"
    assert re.fullmatch(r"PostgreSQL .+, UTF8, not encrypted, [\d.]+ ms a round trip", checks["database"]["detail"])


@pytest.mark.parametrize(
    ("change", "outcome", "detail", "remedy"),
    [
        ({"encoding": "LATIN1"}, "failed", "not in UTF8", "createdb --encoding UTF8"),
        ({"is_standby": True, "missing_to_add": ("INSERT ON x",)}, "ok", "a standby, which can only be asked", ""),
        (
            {"missing_to_add": ("USAGE ON x",), "missing_to_ask": ("USAGE ON x",)},
            "failed",
            "may not use",
            "GRANT USAGE ON x TO",
        ),
        ({"missing_to_add": ("INSERT ON x",)}, "warning", "may ask, not add", "GRANT INSERT ON x TO"),
        ({"is_local": False}, "warning", "not encrypted", "sslmode=verify-full"),
        ({"is_local": False, "is_encrypted": True}, "ok", ", encrypted,", ""),
        ({"round_trip_ms": 20.0}, "warning", "20.0 ms", "nearer to the server"),
    ],
)
def test_what_is_wrong_with_a_database_comes_with_a_remedy(
    cli: Cli,
    postgres: PostgresIndexes,
    monkeypatch: pytest.MonkeyPatch,
    *,
    change: dict[str, Any],
    outcome: str,
    detail: str,
    remedy: str,
) -> None:
    state = PostgresBackend.state
    monkeypatch.setattr(PostgresBackend, "state", lambda backend: replace(state(backend), **change))
    check = _checks(cli, index=postgres.server.address("doctor"))["database"]
    assert check["outcome"] == outcome
    assert detail in check["detail"] and remedy in check["remedy"]
    assert bool(check["remedy"]) == bool(remedy)


def test_a_server_that_is_away_is_told_of(cli: Cli) -> None:
    check = _checks(cli, index="postgresql://me@/db?host=/nowhere")["database"]
    assert check["outcome"] == "failed" and "Check that the server runs" in check["remedy"]
