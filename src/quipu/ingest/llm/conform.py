"""Conform: what a model said of a chunk, checked against the text and the ontology: an Extraction."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from quipu.ingest.llm.grounds import Grounds
from quipu.ingest.llm.kinds import Kinds
from quipu.ingest.llm.relating import Relating
from quipu.model.extraction import (
    ExtractedAlias,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelation,
    Extraction,
    Ontology,
)
from quipu.model.graph import OTHER_TYPE
from quipu.prompts.extraction import EXAMPLE_NAMES
from quipu.text.extraction_records import ExtractionRecord
from quipu.text.names import entity_key

MAX_ENTITIES = 300
MAX_RELATIONS = 600


@dataclass(slots=True)
class Dropped:
    """How many records were left out: names the text does not hold, and what a strict ontology does not allow."""

    n_invented: int = 0
    n_outside: int = 0

    @property
    def n(self) -> int:
        """Both together."""
        return self.n_invented + self.n_outside


class Conformer:
    """Makes an Extraction of records. `dropped` counts over all chunks."""

    def __init__(self, kinds: Kinds, ontology: Ontology) -> None:
        self._kinds = kinds
        self._is_strict = ontology.is_strict
        self._relating = Relating(ontology)
        self._term_by_key = {entity_key(alias): term for term in ontology.glossary for alias in term.aliases}
        self._term_by_key |= {entity_key(term.name): term for term in ontology.glossary}
        self._examples = frozenset(map(entity_key, EXAMPLE_NAMES))
        self.dropped = Dropped()

    def conform(self, records: Collection[ExtractionRecord], grounds: Grounds) -> Extraction:
        """Return what the records say that the text can bear out, each thing once, in their order."""
        said = _Said(grounds)
        for record in records:
            if isinstance(record, ExtractedAlias):
                said.aliases_by_key.setdefault(entity_key(record.name), []).append(record.alias)
        for record in records:
            if isinstance(record, ExtractedEntity):
                self._take_entity(record, said)
        for record in records:
            if isinstance(record, ExtractedRelation):
                self._take_relation(record, said)
            elif isinstance(record, ExtractedAlias):
                self._take_alias(record, said)
            elif isinstance(record, ExtractedClaim):
                self._take_claim(record, said)
        self._leave_out_aliases(said)
        return Extraction(
            entities=tuple(said.entity_by_key.values())[:MAX_ENTITIES],
            relations=tuple(said.relations.values())[:MAX_RELATIONS],
            aliases=tuple(said.aliases.values()),
            claims=tuple(dict.fromkeys(said.claims)),
        )

    def names_something(self, records: Iterable[ExtractionRecord], grounds: Grounds) -> bool:
        """Say whether any name among the records is one of the text."""
        said = _Said(grounds)
        return any(self._is_grounded(name, said) for record in records for name in names_of(record))

    def _take_entity(self, found: ExtractedEntity, said: "_Said") -> None:
        name = self._named(found.name, said)
        if not name:
            return
        kind = self._kind(name, found.type)
        if kind is None:
            self.dropped.n_outside += 1
            return
        key = entity_key(name)
        before = said.entity_by_key.get(key)
        if before is None:
            spans = (said.grounds.span(each) for each in (found.name, name, *self._other_names(key, said)))
            start, end = next((span for span in spans if span[1]), (0, 0))
            said.entity_by_key[key] = replace(found, name=name, type=kind, start=start, end=end)
        else:
            type_ = kind if before.type == OTHER_TYPE else before.type
            said.entity_by_key[key] = replace(before, type=type_, description=before.description or found.description)

    def _take_relation(self, found: ExtractedRelation, said: "_Said") -> None:
        source, target = self._named(found.source, said), self._named(found.target, said)
        ends = entity_key(source), entity_key(target)
        if not source or not target or ends[0] == ends[1]:
            return
        types = tuple(said.type_of(key) for key in ends)
        relation = self._relating.conform(replace(found, source=source, target=target), *types)
        if relation is None or (self._is_strict and "" in types):
            self.dropped.n_outside += 1
            return
        said.relations.setdefault((*sorted(ends), found.description), relation)

    def _take_alias(self, found: ExtractedAlias, said: "_Said") -> None:
        name = self._named(found.name, said)
        if name and said.grounds.hold(found.alias) and entity_key(name) != entity_key(found.alias):
            said.add_alias(name, found.alias)

    def _leave_out_aliases(self, said: "_Said") -> None:
        """Drop other names of what a strict ontology has left out: they would bring it back, of no type."""
        outside = [ends for ends in said.aliases if self._is_strict and not said.type_of(ends[0])]
        for ends in outside:
            del said.aliases[ends]
        self.dropped.n_outside += len(outside)

    def _take_claim(self, found: ExtractedClaim, said: "_Said") -> None:
        subject = self._named(found.subject, said)
        object_ = self._named(found.object, said) if found.object else ""
        if not subject or (found.object and not object_):
            return
        if self._is_strict and not all(said.type_of(entity_key(name)) for name in (subject, object_) if name):
            self.dropped.n_outside += 1
        else:
            said.claims.append(replace(found, subject=subject, object=object_))

    def _named(self, name: str, said: "_Said") -> str:
        """Return the name to use for a name of the text, "" where the text has no such name."""
        key = entity_key(name)
        if not key or not self._is_grounded(name, said):
            self.dropped.n_invented += 1
            return ""
        term = self._term_by_key.get(key)
        if term is None:
            return name
        if entity_key(term.name) != key:
            said.add_alias(term.name, name)
        return term.name

    def _is_grounded(self, name: str, said: "_Said") -> bool:
        """Say whether the text holds a name, or another name of the same thing."""
        key = entity_key(name)
        if key in self._examples:
            return said.grounds.hold_exactly(name)
        return said.grounds.hold(name) or any(map(said.grounds.hold_exactly, self._other_names(key, said)))

    def _other_names(self, key: str, said: "_Said") -> Sequence[str]:
        term = self._term_by_key.get(key)
        return (*said.aliases_by_key.get(key, ()), *(term.aliases if term else ()))

    def _kind(self, name: str, said: str) -> str | None:
        """Return the type the glossary gives, or the one said; None where a strict ontology has no such type."""
        term = self._term_by_key.get(entity_key(name))
        if term is not None and term.type:
            return term.type
        return self._kinds.find(said) or (None if self._is_strict else OTHER_TYPE)


def names_of(record: ExtractionRecord) -> tuple[str, ...]:
    """Return the names of the things a record is about."""
    if isinstance(record, ExtractedRelation):
        return record.source, record.target
    return (record.subject,) if isinstance(record, ExtractedClaim) else (record.name,)


@dataclass(slots=True)
class _Said:
    """What has been taken so far."""

    grounds: Grounds
    aliases_by_key: dict[str, list[str]] = field(default_factory=dict)
    entity_by_key: dict[str, ExtractedEntity] = field(default_factory=dict)
    relations: dict[tuple[str, ...], ExtractedRelation] = field(default_factory=dict)
    aliases: dict[tuple[str, str], ExtractedAlias] = field(default_factory=dict)
    claims: list[ExtractedClaim] = field(default_factory=list)

    def type_of(self, key: str) -> str:
        return self.entity_by_key[key].type if key in self.entity_by_key else ""

    def add_alias(self, name: str, alias: str) -> None:
        self.aliases.setdefault((entity_key(name), entity_key(alias)), ExtractedAlias(name=name, alias=alias))
