"""The part of a graph that is exported, read in blocks; every format writes what is read here."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quipu.engine.graph_map import MappedGraph
from quipu.model.document import Document, DocumentListing, DocumentStatus
from quipu.model.graph import Chunk, Entity, EntityMention, Relation, RelationMention
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import Ints
from quipu.ports.store import ReadView

Row = Mapping[str, object]  # what a format writes of one entity, relation, document, chunk or mention

_ROWS_PER_READ = 1_000
_DOCUMENTS_PER_READ = 100
_LIVE = (DocumentStatus.READY, DocumentStatus.PARTIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """A piece of a file of a folder; the pieces of one file follow each other."""

    file: str
    text: str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format: the media type and the suffix of its file, whom it is for, and what writes it piece by piece.

    `write_files` is set instead of `write` for a format that is a folder. It is sent as one ZIP archive.
    """

    media_type: str
    suffix: str
    purpose: str
    write: "Callable[[GraphPart], AsyncIterator[str]] | None" = None
    write_files: "Callable[[GraphPart], AsyncIterator[FilePiece]] | None" = None

    @property
    def is_folder(self) -> bool:
        """Whether the format consists of several files."""
        return self.write_files is not None


@dataclass(frozen=True)
class ExportedDocument:
    """A document with its chunks, and what each chunk mentions of the exported part, by chunk id."""

    document: Document
    chunks: Sequence[Chunk]
    entities: Mapping[str, Sequence[EntityMention]]
    relations: Mapping[str, Sequence[RelationMention]]

    @cached_property
    def mentions(self) -> Mapping[str, int]:
        """How often the document mentions each entity, by key, ordered by key."""
        counts = Counter(mention.key for chunk in self.chunks for mention in self.entities.get(chunk.id, ()))
        return dict(sorted(counts.items()))

    @property
    def row(self) -> Row:
        """What every format writes of the document."""
        document = self.document
        metadata = {
            name: list(value) if isinstance(value, tuple) else value for name, value in document.metadata.items()
        }
        return {"id": document.id, "title": document.title, "source": document.source, "metadata": metadata}


@dataclass(frozen=True)
class GraphPart:
    """The part of a graph that is exported: `entities` [n] are places, those with the most relations first.

    `keys` has the key of the entity at each place of the view. `relations` are the places of the ends of the relations
    between the exported entities, [m] each, the heaviest first. `map_places` are the places of the view's entities in
    `graph`, the map of the whole index, -1 for none. With `is_limited`, documents that mention no exported entity are
    left out.
    """

    view: ReadView
    graph: MappedGraph
    keys: Sequence[str]
    map_places: Ints
    entities: Ints
    relations: tuple[Ints, Ints]
    is_limited: bool

    @cached_property
    def community_by_entity(self) -> Sequence[str]:
        """The id of the coarsest community of the entity at each place, "" for none."""
        finest = np.append(self.graph.tree.finest, -1)[self.map_places]
        coarsest = self.graph.ancestors[finest, 0]
        return [self.graph.ids[place] if place >= 0 else "" for place in coarsest.tolist()]

    @cached_property
    def exported_keys(self) -> frozenset[str]:
        """The keys of the exported entities."""
        return frozenset(self.keys[place] for place in self.entities.tolist())

    def strongest(self, max_entities: int, max_relations: int) -> "GraphPart":
        """Return the part with the most relations, within these limits."""
        sources, targets = self.relations
        entities = self.entities[:max_entities]
        is_inside = np.isin(sources, entities) & np.isin(targets, entities)
        relations = (sources[is_inside][:max_relations], targets[is_inside][:max_relations])
        return GraphPart(self.view, self.graph, self.keys, self.map_places, entities, relations, self.is_limited)

    async def read_entities(self) -> AsyncGenerator[list[tuple[Row, Entity]], None]:
        """Yield blocks of entities with the values that every format writes."""
        for start in range(0, len(self.entities), _ROWS_PER_READ):
            places = self.entities[start : start + _ROWS_PER_READ].tolist()
            entities = await self.view.entities([self.keys[place] for place in places])
            yield [(self._entity_row(*pair), pair[1]) for pair in zip(places, entities, strict=True)]

    async def read_relations(self) -> AsyncGenerator[list[tuple[Row, Relation]], None]:
        """Yield blocks of relations with the values that every format writes."""
        for start in range(0, len(self.relations[0]), _ROWS_PER_READ):
            pairs = zip(*(ends[start : start + _ROWS_PER_READ].tolist() for ends in self.relations), strict=True)
            relations = await self.view.relations([relation_id(self.keys[a], self.keys[b]) for a, b in pairs])
            yield [(_relation_row(relation), relation) for relation in relations]

    async def read_documents(
        self, *, with_entities: bool = True, with_relations: bool = True
    ) -> AsyncGenerator[ExportedDocument, None]:
        """Yield the live documents by id, each with its chunks and with the mentions of exported entities.

        Without entities or relations, these mentions are not read.
        """
        after, with_entities = "", with_entities or self.is_limited
        while True:
            listing = DocumentListing(statuses=_LIVE, k=_DOCUMENTS_PER_READ, after=after)
            documents = await self.view.documents(listing=listing)
            for document in documents:
                chunks = await self.view.chunks(document_id=document.id)
                ids = [chunk.id for chunk in chunks]
                entities = await self._entity_mentions(ids if with_entities else [])
                relations = await self._relation_mentions(ids if with_relations else [])
                part = ExportedDocument(document, chunks, entities, relations)
                if part.mentions or not self.is_limited:
                    yield part
            if len(documents) < _DOCUMENTS_PER_READ:
                return
            after = listing.cursor(documents[-1])

    async def _entity_mentions(self, chunks: Sequence[str]) -> Mapping[str, Sequence[EntityMention]]:
        mentions, exported = await self.view.mentions(EntityMention, chunks), self.exported_keys
        return {chunk: [m for m in of_chunk if m.key in exported] for chunk, of_chunk in mentions.items()}

    async def _relation_mentions(self, chunks: Sequence[str]) -> Mapping[str, Sequence[RelationMention]]:
        mentions, exported = await self.view.mentions(RelationMention, chunks), self.exported_keys
        return {
            chunk: [m for m in of_chunk if m.source in exported and m.target in exported]
            for chunk, of_chunk in mentions.items()
        }

    def _entity_row(self, place: int, entity: Entity) -> Row:
        map_place = int(self.map_places[place])
        x, y = self.graph.layout.nodes[map_place].tolist() if map_place >= 0 else (0.0, 0.0)
        return {
            "id": entity.key,
            "label": entity.name,
            "type": entity.type,
            "description": entity.description,
            "aliases": list(entity.aliases),
            "mentions": entity.n_mentions,
            "community": self.community_by_entity[place],
            "x": round(x, 2),
            "y": round(y, 2),
        }


def _relation_row(relation: Relation) -> Row:
    return {
        "source": relation.source,
        "target": relation.target,
        "weight": relation.weight,
        "description": relation.description,
        "keywords": list(relation.keywords),
        "mentions": relation.n_mentions,
    }
