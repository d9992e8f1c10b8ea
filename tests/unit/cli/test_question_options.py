"""Options: what one declaration beside a strategy gives, and what is refused."""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

import quipu.retrieve
from quipu.cli.asking import parse_query
from quipu.cli.commands.ask import command as ask
from quipu.errors import InvalidInput
from quipu.model.query import Budget, Filter, Options, Query, options_in
from quipu.retrieve import strategies_by_options
from quipu.retrieve.drift import DriftOptions
from quipu.retrieve.mix import MixOptions, MixWeights
from quipu.retrieve.question import build_query, check_query
from quipu.settings import Settings, effective, unknown_variables
from scripts.reference import settings_page, strategies_page
from tests.unit.cli.conftest import Cli, FakeEngine

STRATEGY_FILE = '''
"""moonlit: made up for this test."""

from dataclasses import dataclass
from typing import Literal

from quipu.model.query import Options, option
from quipu.retrieve.lexical import retrieve
from quipu.retrieve.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class MoonlitOptions(Options):
    """The options of `moonlit`."""

    moon_share: float = option(0.25, "Share of the passages that are read by moonlight.", between=(0.0, 1.0))
    moon_phase: Literal["new", "full"] = option("full", "Phase of the moon.")
    keep_clouds: bool = option(True, "Whether clouds stay.")


STRATEGY = Strategy(
    name="moonlit", retrieve=retrieve, options=(MoonlitOptions,), summary="passages", after="nobody", when="never"
)
'''


@pytest.fixture
def moonlit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Options]]:
    """Return the options of a strategy that consists of one file and its line in the table of strategies."""
    name = "quipu.retrieve.moonlit"
    file = tmp_path / "moonlit.py"
    file.write_text(STRATEGY_FILE)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(quipu.retrieve._MODULES, "moonlit", "moonlit")
    monkeypatch.chdir(tmp_path)
    yield module.MoonlitOptions


def test_an_option_declared_beside_a_strategy_is_a_setting(
    moonlit: type[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings(moon_share=0.5).query("Who?").options == (moonlit(moon_share=0.5),)  # type: ignore[call-arg]
    Path("quipu.toml").write_text('# the night\nmoon_phase = "new"\n')
    monkeypatch.setenv("QUIPU_KEEP_CLOUDS", "false")
    settings = Settings()
    assert settings.query("Who?").options == (moonlit(moon_phase="new", keep_clouds=False),)  # type: ignore[call-arg]
    by_name = {setting.name: setting for setting in effective(settings)}
    assert (by_name["moon_phase"].value, by_name["moon_phase"].origin) == ("new", "quipu.toml:2")
    assert (by_name["keep_clouds"].value, by_name["keep_clouds"].origin) == (False, "environment QUIPU_KEEP_CLOUDS")
    assert (by_name["moon_share"].value, by_name["moon_share"].group) == (0.25, "moonlit")
    assert unknown_variables() == []


def test_an_option_declared_beside_a_strategy_is_a_flag_with_help(
    moonlit: type[Options], cli: Cli, engine: FakeEngine
) -> None:
    assert cli("ask", "Who?", "--moon-share", "0.5", "--moon-phase=new", "--no-keep-clouds").code == 0
    (query,) = engine.queries
    assert query.options == (moonlit(moon_share=0.5, moon_phase="new", keep_clouds=False),)  # type: ignore[call-arg]
    page = cli("ask", "--help").out
    assert "Options of moonlit:" in page and "--moon-phase new|full" in page
    assert "Share of the passages that are read by moonlight." in " ".join(page.split())
    refused = cli("ask", "Who?", "--moon-share", "2")
    assert "moon_share = '2' (argument) is not allowed. Use a number from 0.0 to 1.0." in " ".join(refused.err.split())


def test_an_option_declared_beside_a_strategy_is_a_python_keyword(moonlit: type[Options]) -> None:
    query = build_query(lambda text: Query(text=text), "Who?", {"moon_share": 0.5, "top_k": 3})
    assert query == Query(text="Who?", top_k=3, options=(moonlit(moon_share=0.5),))  # type: ignore[call-arg]
    again = build_query(lambda text: Query(text=text), query, {"moon_phase": "new"})
    assert again.options == (moonlit(moon_share=0.5, moon_phase="new"),)  # type: ignore[call-arg]
    for name, value, message in (
        ("moon_share", 2.0, r"moon_share = 2\.0 is not allowed\. Use a number from 0\.0 to 1\.0"),
        ("moon_share", "much", r"moon_share = 'much' is not valid\. Use a number"),
        ("moon_phase", "half", r"moon_phase = 'half' is not valid\. Use one of: 'new', 'full'"),
        ("moon_phas", "new", r"no option 'moon_phas'\. Did you mean moon_phase\? It takes: strategy, .* moon_share, "),
    ):
        with pytest.raises(InvalidInput, match=message):
            build_query(lambda text: Query(text=text), "Who?", {name: value})


def test_an_option_declared_beside_a_strategy_is_in_the_reference(moonlit: type[Options]) -> None:
    row = (
        "| `moon_share` | `QUIPU_MOON_SHARE` | `moon_share` | `0.25` | a number from 0.0 to 1.0 | Share of the passages"
    )
    assert row in settings_page().partition("## Options of moonlit")[2]
    assert "`moon_share`, `moon_phase`, `keep_clouds`" in strategies_page()


def test_settings_become_options_of_the_query() -> None:
    settings = Settings(community_level=1, entity_weight=3, drift_follow_ups=7, report_tokens=900)
    assert settings.query("Who?") == Query(
        text="Who?",
        community_level=1,
        budget=Budget(reports=900),
        options=(MixOptions(mix_weights=MixWeights(entity=3.0)), DriftOptions(drift_follow_ups=7)),
    )


def test_defaults_of_settings_and_query_agree() -> None:
    assert Settings().query("Who?") == Query(text="Who?")


def test_without_an_option_of_a_strategy_no_flag_of_one_is_read() -> None:
    with click.Context(ask) as context:
        ask.parse_args(context, ["Who?", "--top-k", "3", "--json"])
        assert not any("Options of mix" in vars(parameter).values() for parameter in ask.get_params(context))
    with click.Context(ask) as context:
        ask.parse_args(context, ["Who?", "--vector-weight=3"])
        assert context.params["vector_weight"] == "3"


def test_every_option_has_its_own_name_and_allows_its_default() -> None:
    kinds: list[type[Query | Options]] = [Query, *strategies_by_options()]
    options = [option for kind in kinds for option in options_in(kind)]
    names = [option.name for option in options] + list(set(Settings.model_fields) - {o.name for o in options_in(Query)})
    keywords = [field.name for kind in kinds for field in fields(kind)]
    assert len(set(names)) == len(names) and len(set(keywords)) == len(keywords)
    for option in options:
        assert option.allows(option.default) and option.description.endswith(".")
        assert (option.between is not None) == (option.annotation in (int, float))


@pytest.mark.parametrize(
    ("allowed", "refused", "message"),
    [
        (Query(text="Who?", community_level=0), Query(text="Who?", community_level=-1), "^community_level = -1 is not"),
        (Query(text="Who?", min_similarity=-1), Query(text="Who?", min_similarity=-1.1), "from -1.0 to 1.0"),
        (
            Query(text="?", budget=Budget(total=1)),
            Query(text="?", budget=Budget(total=0)),
            r"^budget\.total = 0 is",
        ),
        (Query(text="?", response_type="A"), Query(text="?", response_type=""), "response_type = '' is not allowed"),
    ],
)
def test_a_value_out_of_its_range_is_refused_when_asked(allowed: Query, refused: Query, message: str) -> None:
    check_query(allowed)
    with pytest.raises(InvalidInput, match=message):
        check_query(refused)


def test_options_of_one_class_replace_each_other_and_others_stay() -> None:
    query = Query(text="Who?", options=(DriftOptions(drift_follow_ups=1), MixOptions()))
    changed = query.with_options(DriftOptions(drift_follow_ups=2))
    assert changed.options_of(DriftOptions).drift_follow_ups == 2
    assert len(changed.options) == 2
    assert Query(text="Who?").options_of(DriftOptions) == DriftOptions()


def test_the_command_line_parses_into_the_same_query_as_the_settings() -> None:
    settings = Settings(top_k=3, vector_weight=2)
    query = parse_query(settings, "Who?", keywords=(), themes=(), allowed=Filter())
    assert query == settings.query("Who?")
