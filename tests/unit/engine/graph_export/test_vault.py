"""A vault: safe names of files, and links that lead to a note."""

import re
from pathlib import PurePosixPath

import pytest
import yaml

from quipu.engine import Quipu
from quipu.engine.graph_export.vault import file_names
from tests.unit.engine.graph_export.world import WIKI, exported_files

_LINK = re.compile(r"\[\[([^\[\]|]+)\|([^\[\]|\n]+)\]\]")


async def test_every_entity_and_document_has_a_note_and_every_link_leads_to_one(kb: Quipu) -> None:
    files = {name: content.decode() for name, content in (await exported_files(kb, "obsidian")).items()}
    assert len(files) == 5 + 3
    ada = files["Entities/Ada.md"]
    assert yaml.safe_load(ada.split("---")[1]) == {"id": "ada", "aliases": ["Ada", "Countess <u>"], "type": "Person"}
    links = [target for name in files if name.startswith("Entities/") for target, _ in _LINK.findall(files[name])]
    assert len(links) == 4 + 6  # two relations from both ends, and the documents of each entity
    assert {f"{target}.md" for target in links} <= files.keys()
    assert "[[Documents/letters b .md|letters<b>.md]]" in ada


async def test_a_hostile_name_stays_inside_the_vault_and_inside_its_link(kb: Quipu) -> None:
    files = await exported_files(kb, "obsidian")
    assert all(len(PurePosixPath(name).parts) == 2 and ".." not in PurePosixPath(name).parts for name in files)
    thing = next(content.decode() for name, content in files.items() if name.startswith("Entities/a b c"))
    assert len(_LINK.findall(thing)) == thing.split("---")[2].count("[[") == 2
    assert yaml.safe_load(thing.split("---")[1])["aliases"] == [WIKI]
    evil = files["Documents/CON_.md"].decode()
    assert yaml.safe_load(evil.split("---")[1]) == {
        "id": "../evil/../con",
        "title": "CON",
        "source": "../evil/../con.txt",
        "year": 1950,
    }


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("a/b\\c", "a b c"),
        ("..", "Unnamed"),
        (".hidden.", "hidden"),
        ("nul.txt", "nul.txt_"),
        ("AUX", "AUX_"),
        ("tab\tand\nline", "tab and line"),
        ("[[x]] #y ^z |w", "x y z w"),
        ("\ud800", "Unnamed"),
        ("Лхаса", "Лхаса"),
        ("ä" * 200, "ä" * 75),
    ],
)
def test_a_name_of_a_file_is_safe_on_every_system(label: str, name: str) -> None:
    assert file_names({"id": label}) == {"id": name}


def test_names_that_some_system_takes_for_one_are_told_apart_whatever_their_order() -> None:
    labels = {"1": "Éa", "2": "E\u0301A", "3": "other"}
    names = file_names(labels)
    assert len({name.casefold() for name in names.values()}) == 3
    assert names["3"] == "other"
    assert file_names(dict(reversed(labels.items()))) == names
