"""Tests of scripts and their files."""

import re

import pytest

from quipu.errors import InvalidInput
from quipu.testing.scripted.script import (
    CannedReply,
    Fault,
    FaultName,
    Latency,
    Limit,
    ReplyRules,
    RequestKind,
    Script,
    Service,
    parse_script,
    write_script,
)
from tests.architecture.source import PROJECT

SCRIPT = Script(
    seed="7",
    latency=Latency(mean_s=0.5, sigma=0.3, first_share=0.5, piece_s=0.01),
    limit=Limit(concurrent=4, beyond="slow", retry_after_s=2),
    faults=(Fault(name=FaultName.RESET_MIDWAY, probability=0.1, kinds=(RequestKind.EXTRACT,), calls=(1, 2)),),
    answering=ReplyRules(n_withheld=2, replies=(CannedReply(text="Yes.", containing="?"),)),
    service=Service(models=("m",), api_key="k", context_window=4096, rejects=("max_tokens",)),
    log="log.jsonl",
)


def test_a_script_survives_its_file() -> None:
    assert parse_script(write_script(SCRIPT)) == SCRIPT


def test_the_page_on_testing_shows_a_script_and_names_every_fault() -> None:
    page = (PROJECT / "docs" / "testing.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert len(parse_script(example).faults) == 4
    assert [name for name in FaultName if f"`{name}`" not in page] == []


def test_a_file_names_only_what_differs() -> None:
    assert parse_script('{"faults": [{"name": "429", "retry_after_s": 1}]}') == Script(
        faults=(Fault(name=FaultName.TOO_MANY_REQUESTS, retry_after_s=1),)
    )


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ('{"latncy": {}}', "latncy"),
        ('{"latency": {"mean": 1}}', "latency.mean"),
        ('{"latency": {"mean_s": -1}}', "latency.mean_s"),
        ('{"faults": [{"name": "418"}]}', "faults.0.name"),
        ('{"faults": [{"name": "429", "probability": 2}]}', "faults.0.probability"),
        ('{"service": {"piece_chars": 0}}', "service.piece_chars"),
        ("{", "its beginning"),
    ],
)
def test_what_does_not_fit_is_named(data: str, place: str) -> None:
    with pytest.raises(InvalidInput, match=place):
        parse_script(data)


def test_the_key_is_not_shown() -> None:
    assert "sesame" not in repr(Script(service=Service(api_key="sesame")))


def test_a_limit_rejects_or_slows_what_is_beyond_it() -> None:
    assert [Limit(concurrent=2).rejects(n) for n in (1, 2, 3)] == [False, False, True]
    assert [Limit(concurrent=2, beyond="slow").slowdown(n) for n in (1, 2, 4)] == [1, 1, 2]
    assert not Limit().rejects(1000) and Limit(concurrent=2).slowdown(9) == 1
