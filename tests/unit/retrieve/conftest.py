"""The library of retrieval tests: travellers and the cities they saw."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.retrieve.fakes import Library, page

PAGES = (
    page(
        "Marco Polo",
        "Marco Polo was born in Venice. He served Kublai Khan.",
        names={"Marco Polo": "Person", "Venice": "Location", "Kublai Khan": "Person"},
        relations=[
            ("Marco Polo", "Venice", "Marco Polo was born in Venice."),
            ("Marco Polo", "Kublai Khan", "He served Kublai Khan."),
        ],
    ),
    page(
        "Kublai Khan",
        "Kublai Khan ruled from Dadu, his capital.",
        names={"Kublai Khan": "Person", "Dadu": "Location"},
        relations=[("Kublai Khan", "Dadu", "Kublai Khan ruled from Dadu, his capital.")],
    ),
    page("Venice", "Venice is built upon islands.", names={"Venice": "Location"}),
    page("Paper", "Paper was made of mulberry bark.", names={"Paper": "Artifact"}),
)


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    """An empty library, open."""
    opened = Library(tmp_path)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def travels(library: Library) -> Library:
    """The library with the pages about travellers."""
    await library.publish(*PAGES)
    return library
