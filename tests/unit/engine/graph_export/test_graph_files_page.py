"""The page: it shows names as they are, runs only its own script, and asks no other host."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

from quipu.engine import Quipu
from tests.laws.world import engine
from tests.unit.engine.graph_export.world import COMMENT, FORMULA, LHASA, SCRIPT, WIKI, exported


async def test_an_empty_graph_is_a_page_without_entities(tmp_path: Path) -> None:
    async with engine(tmp_path / "empty") as kb:
        assert _Page(await exported(kb, "html")).graph["nodes"] == []


class _Page(HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._open = ""
        self.feed(text)
        self.close()
        self.graph = json.loads(self.texts["script"][0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.texts:
            self.texts[self._open][-1] += data


async def test_a_page_shows_names_full_of_markup_as_they_are(kb: Quipu) -> None:
    text = await exported(kb, "html")
    page = _Page(text)
    assert {node["label"] for node in page.graph["nodes"]} == {"Ada", SCRIPT, LHASA, WIKI, FORMULA}
    ada = next(node for node in page.graph["nodes"] if node["id"] == "ada")
    assert ada["description"] == f"A <i>countess</i> & {COMMENT}"
    first = next(quote for quote in ada["quotes"] if quote["document"] == "letters<b>.md")
    assert first["text"] == f"Ada knew {SCRIPT} well."
    assert len(page.texts["script"]) == 2
    assert "alert" not in page.texts["script"][1]
    assert "<" not in page.texts["script"][0]
    assert page.graph["totals"] == {"n_entities": 5, "n_relations": 2}


async def test_a_page_runs_only_its_own_script_and_asks_no_other_host(kb: Quipu) -> None:
    text = await exported(kb, "html")
    page = _Page(text)
    assert not [
        attributes for _, attributes in page.elements if {"src", "href", "style", "onclick"} & attributes.keys()
    ]
    assert not re.search(r"innerHTML|insertAdjacent|document\.write|eval\(|https?://|fetch\(", text)
    policy = next(attributes["content"] for _, attributes in page.elements if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for content in (page.texts["script"][1], page.texts["style"][0]):
        assert f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
