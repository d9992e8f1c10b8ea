"""Tests of documents that cannot be stored: they are refused before they are queued."""

from pathlib import Path

import pytest

import quipu
from quipu.errors import InvalidInput
from quipu.model.document import Metadata

HALF = "x\ud800"


@pytest.mark.parametrize(
    ("id_", "title", "metadata"),
    [
        (HALF, "", {}),
        ("a", HALF, {}),
        ("a", "", {HALF: 1}),
        ("a", "", {"k": HALF}),
        ("a", "", {"k": ("y", HALF)}),
    ],
)
async def test_half_of_a_surrogate_pair_is_refused_wherever_it_stands(
    tmp_path: Path, id_: str, title: str, metadata: Metadata
) -> None:
    source = quipu.SourceDocument(id=id_, content=b"Anna left.", title=title, metadata=metadata)
    async with quipu.open(f"{tmp_path}/index") as kb:
        with pytest.raises(InvalidInput, match="a lone surrogate"):
            await kb.add(source)
        assert (await kb.add(quipu.SourceDocument(id="b", content=b"Berta stayed."))).n_added == 1


async def test_metadata_with_nul_are_refused(tmp_path: Path) -> None:
    source = quipu.SourceDocument(id="a", content=b"Anna left.", metadata={"field": ("fine", "be\0fore")})
    async with quipu.open(f"{tmp_path}/index") as kb:
        with pytest.raises(InvalidInput, match="field"):
            await kb.add(source)
