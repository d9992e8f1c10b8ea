"""The public names: all there, and quick to import."""

import subprocess
import sys

import pytest

import quipu


@pytest.mark.parametrize("name", quipu.__all__)
def test_every_public_name_can_be_used(name: str) -> None:
    assert getattr(quipu, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'quipu' has no attribute 'opne'"):
        _ = quipu.opne


def test_completion_offers_what_is_public_and_nothing_else() -> None:
    assert dir(quipu) == sorted(quipu.__all__)


def test_importing_quipu_imports_nothing_heavy() -> None:
    heavy = "('asyncio', 'click', 'numpy', 'pydantic', 'quipu.engine', 'quipu.settings', 'rich', 'sqlalchemy')"
    probe = f"import quipu, sys; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
