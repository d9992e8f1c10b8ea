"""The graph as one page of HTML for people: a map and a list, with quotes from the documents; it needs no server."""

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from hashlib import sha256
from importlib.resources import files

from quipu.engine.graph_export.part import GraphPart, Row
from quipu.model.graph import Chunk, Entity
from quipu.ports.store import OccurrenceKind, ReadView

MAX_PAGE_ENTITIES, MAX_PAGE_RELATIONS = 10_000, 30_000  # a browser reads the page whole
_N_QUOTES, _QUOTE_CHARS = 3, 300
_SENTENCE_END = re.compile(r"[.!?。！？]\s|[。！？]|\n\s*\n")


async def write_html(part: GraphPart) -> AsyncIterator[str]:
    """Yield a page that shows the strongest part of the graph without a server, and loads nothing from anywhere.

    Texts of documents are in a block of JSON, never in markup. The policy of the page lets only its own script run.
    """
    page = part.strongest(MAX_PAGE_ENTITIES, MAX_PAGE_RELATIONS)
    head, style, script = (
        (files("quipu.engine.graph_export") / "page.html").read_text(encoding="utf-8").split("<!-- part -->\n")
    )
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {_source(style)}"
    policy += f"; script-src {_source(script)}"
    yield (
        head.replace("{policy}", policy)
        + f"<style>{style}</style>\n"
        + '<script type="application/json" id="graph">{"nodes":['
    )
    separator = ""
    async with aclosing(page.read_entities()) as blocks:
        async for entities in blocks:
            quotes = await _quotes(page.view, [entity for _, entity in entities])
            yield separator + ",\n".join(_safe({**row, "quotes": quotes[entity.key]}) for row, entity in entities)
            separator = ",\n"
    yield '],"edges":['
    separator = ""
    async with aclosing(page.read_relations()) as relation_blocks:
        async for relations in relation_blocks:
            yield separator + ",\n".join(_safe(row) for row, _ in relations)
            separator = ",\n"
    totals = {"n_entities": len(part.entities), "n_relations": len(part.relations[0])}
    yield f'],"communities":{_safe(await _communities(page))},"totals":{_safe(totals)}}}</script>\n'
    yield f"<script>{script}</script>\n</html>\n"


def _source(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _safe(value: object) -> str:
    """Return JSON that cannot end the script element it is in."""
    return _json(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


async def _communities(part: GraphPart) -> list[Row]:
    """Return the coarsest communities of the part, with the titles of their reports."""
    used = {part.community_by_entity[place] for place in part.entities.tolist()} - {""}
    layout, place_by_id = part.graph.layout, part.graph.place_by_id
    titles = {report.cluster: report.title for report in await part.view.cluster_reports(sorted(used))}
    return [
        {
            "id": identifier,
            "label": titles.get(identifier, ""),
            "x": round(float(layout.communities[place_by_id[identifier], 0]), 2),
            "y": round(float(layout.communities[place_by_id[identifier], 1]), 2),
            "radius": round(float(layout.radii[place_by_id[identifier]]), 2),
        }
        for identifier in sorted(used)
    ]


async def _quotes(view: ReadView, entities: Sequence[Entity]) -> dict[str, list[Row]]:
    """Return for each entity the sentences of a few chunks that mention it, with their documents."""
    counts = await view.occurrences(OccurrenceKind.MENTION, [entity.key for entity in entities], _N_QUOTES)
    ids = list(dict.fromkeys(chunk for chunk_ids in counts.values() for chunk in chunk_ids))
    chunk_by_id = {chunk.id: chunk for chunk in await view.chunks(ids)}
    return {
        entity.key: [_quote(entity, chunk_by_id[chunk]) for chunk in counts.get(entity.key, ()) if chunk in chunk_by_id]
        for entity in entities
    }


def _quote(entity: Entity, chunk: Chunk) -> Row:
    """Return the sentence in which a chunk first names an entity, else its beginning."""
    text = chunk.text
    names = "|".join(re.escape(name) for name in (entity.name, *entity.aliases) if name)
    match = re.search(names, text, re.IGNORECASE) if names else None
    place = match.start() if match else 0
    ends = [mark.end() for mark in _SENTENCE_END.finditer(text)]
    start = max((end for end in ends if end <= place), default=0)
    end = min((end for end in ends if end > place), default=len(text))
    start = max(start, place - _QUOTE_CHARS // 2)
    end = min(end, start + _QUOTE_CHARS)
    return {"text": " ".join(text[start:end].split()), "document": chunk.document_id, "title": chunk.title}
