"""Tests of the contract as others get it: what it needs, and what it says where that is missing."""

import subprocess
import sys

import pytest

from quipu.testing import store_contract

_WITHOUT = "import sys; sys.modules['{missing}'] = None; import quipu.testing.store_contract"


def _import_without(missing: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(missing=missing)], capture_output=True, text=True, check=False
    )


def test_without_pytest_it_says_what_to_install() -> None:
    done = _import_without("pytest")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "The store contract runs under pytest. pip install pytest pytest-asyncio"
    )


@pytest.mark.parametrize("missing", ["hypothesis", "sqlalchemy"])
def test_it_needs_nothing_of_the_projects_own_tests_or_stores(missing: str) -> None:
    done = _import_without(missing)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_promise_is_tested_under_a_name_that_hides_another() -> None:
    parts = [part for part in store_contract.StoreContract.__mro__ if part.__module__.startswith("quipu.testing")]
    names = [name for part in parts for name in vars(part) if name.startswith("test_")]
    assert len(names) == len(set(names)) > 100
