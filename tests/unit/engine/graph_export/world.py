"""A small graph full of names that break files, and how it is exported."""

import io
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from quipu.engine import Quipu
from quipu.testing.contract.steps import publish
from quipu.testing.facts import alias, document, entity, passage, relation
from tests.laws.world import engine

SCRIPT = "</script><script>alert(1)</script>"
COMMENT = "<!--<script>\"'&amp; ]]>"
LHASA = "Лхаса\x01"
WIKI = "a [[b]]|c/../d\\e"  # as a link and as a path
FORMULA = '=HYPERLINK("x","y")'
ESCAPES = 'tick\' \\u0027 back\\ "quote"\nnew line'


@asynccontextmanager
async def hostile_world(folder: Path) -> AsyncIterator[Quipu]:
    """Open an engine whose graph has hostile names."""
    async with engine(folder) as kb:
        await publish(
            kb._components.store,
            document(
                "letters<b>.md",
                passage(
                    f"It was late. Ada knew {SCRIPT} well. She left.",
                    entity("Ada", "Person", f"A <i>countess</i> & {COMMENT}"),
                    entity(SCRIPT, "Person"),
                    alias("Ada", "Countess <u>"),
                    relation("Ada", SCRIPT, "knew <img src=x onerror=alert(1)>", keywords=("a", "b")),
                ),
                metadata={"year": 1843, "tags": ("x", "y")},
            ),
            document("2", passage(f"Ada saw {LHASA}.", entity("Ada", "Person"), entity(LHASA, "Place"))),
            document(
                "../evil/../con",
                passage(
                    f"{WIKI} and {FORMULA} and {ESCAPES}",
                    entity(WIKI, "Thing", ESCAPES),
                    entity(FORMULA, "Thing", FORMULA),
                    relation(WIKI, FORMULA, ESCAPES, keywords=(ESCAPES,), weight=2.5),
                ),
                title="CON",
                metadata={"year": 1950},
            ),
        )
        yield kb


async def exported_bytes(kb: Quipu, name: str, **options: Any) -> bytes:
    """Return the bytes of an export."""
    return b"".join([piece async for piece in kb.export_graph(name, **options)])


async def exported(kb: Quipu, name: str, **options: Any) -> str:
    """Return an export as a text."""
    return (await exported_bytes(kb, name, **options)).decode()


async def exported_files(kb: Quipu, name: str, **options: Any) -> dict[str, bytes]:
    """Return the files of an export that is an archive."""
    with zipfile.ZipFile(io.BytesIO(await exported_bytes(kb, name, **options))) as archive:
        assert archive.testzip() is None
        return {entry: archive.read(entry) for entry in archive.namelist()}
