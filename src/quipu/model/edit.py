"""Edits: a person's corrections of the graph, kept as facts, and the rules by which they change what chunks state.

An edit never changes an entity in place. It says how the statements of chunks are read from then on: of the chunks that
are in the index, and of those that come later. So a correction survives an update of its documents, and undoing it
gives the graph that the documents state without it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import TypeVar

from quipu.model.graph import AliasMention, ClaimMention, Entity, EntityMention, RelationMention


class EditKind(StrEnum):
    """What an edit does.

    CREATE: a person states an entity or a relation, in a document of its own. RENAME: the entity has another name.
    RETYPE: the entity has this type, or the relation these keywords. REDESCRIBE: its only description is this one.
    HIDE: it is left out, with its relations and claims. MERGE: several entities are one. SPLIT: in some documents, the
    name stands for another entity. DISTINCT: two entities are not the same, so they are not proposed as duplicates.
    """

    CREATE = "create"
    RENAME = "rename"
    RETYPE = "retype"
    REDESCRIBE = "redescribe"
    HIDE = "hide"
    MERGE = "merge"
    SPLIT = "split"
    DISTINCT = "distinct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One correction. `entities` are keys: of one entity, of the two ends of a relation, or of several to merge.

    `key` and `name` belong to the entity that a rename, merge or split leads to. `type` and `description` are the new
    ones, `keywords` those of a relation. `documents` are the ids of those in which a split holds, or of the one that
    states what was created.
    """

    kind: EditKind
    entities: tuple[str, ...]
    key: str = ""
    name: str = ""
    type: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    author: str = ""
    reason: str = ""

    @property
    def is_of_relation(self) -> bool:
        """Whether this is an edit of the relation between two entities."""
        return len(self.entities) == 2 and self.kind not in (EditKind.MERGE, EditKind.DISTINCT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEdit:
    """An edit in the index. Times are ISO 8601 in UTC; `undone_at` is "" while the edit holds.

    `n_chunks` is the number of chunks whose statements it changes. An edit that holds and has no effect lacks its
    target: no document states it now.
    """

    id: int
    edit: Edit
    made_at: str
    undone_at: str = ""
    n_chunks: int = 0
    has_effect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """An edit as a person asks for it; `entities` are names, aliases or keys.

    - create: `entities` is a new name, with `type` and `description`; or the two ends of a new relation, with
      `description` and `keywords`
    - rename: one entity gets the new `name`
    - retype: one entity gets the `type`; or a relation gets the `keywords`
    - redescribe: one entity or relation gets the `description`, in place of all that documents say
    - hide: one entity, or one relation
    - merge: two or more entities become one, called `name` (by default as the first)
    - split: in `documents`, one entity is another one, called `name`
    - distinct: two entities are different; they are no longer proposed as duplicates
    """

    kind: EditKind
    entities: Sequence[str]
    name: str = ""
    type: str = ""
    description: str = ""
    keywords: Sequence[str] = ()
    documents: Sequence[str] = ()
    author: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """The edits that were undone, and those that lack their target since, although they hold."""

    undone: tuple[RecordedEdit, ...]
    without_target: tuple[RecordedEdit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPage:
    """A page of edits, the newest first; `cursor` asks for the next one, "" if this is the last."""

    edits: tuple[RecordedEdit, ...]
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateCandidate:
    """Two entities (keys, the smaller first) that may be one. `score` is from 0 to 1; `reasons` are for a reader."""

    first: str
    second: str
    score: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatePair:
    """A candidate with both entities."""

    candidate: DuplicateCandidate
    first: Entity
    second: Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateDecision:
    """What a person decides about two entities (names or keys): MERGE, under `name`, or DISTINCT."""

    first: str
    second: str
    kind: EditKind
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What one chunk states: its mentions of entities, relations, aliases and claims, each in order."""

    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    aliases: tuple[AliasMention, ...] = ()
    claims: tuple[ClaimMention, ...] = ()

    def entity_keys(self) -> set[str]:
        """Return the keys of all entities that are mentioned."""
        return {mention.key for mention in self.entities}


class EditRules:
    """All edits that hold, in the order in which they were made, as one change of what chunks state.

    An edit sees what the edits before it lead to: after a merge, the entity that remains.
    """

    def __init__(self, edits: Iterable[tuple[int, Edit]] = ()) -> None:
        self._edits = [(number, edit) for number, edit in edits if edit.kind in _CHANGES]
        self._positions: dict[str, list[int]] = {}
        for position, (_, edit) in enumerate(self._edits):
            for key in {*edit.entities, *((edit.key,) if edit.kind is EditKind.RENAME else ())}:
                self._positions.setdefault(key, []).append(position)

    @property
    def keys(self) -> Collection[str]:
        """The keys of all entities whose mentions an edit may change."""
        return self._positions.keys()

    def apply(self, document_id: str, statements: Statements) -> tuple[Statements, tuple[int, ...]]:
        """Return what a chunk of this document states after all edits, and the numbers of those that change it."""
        waiting = [position for key in statements.entity_keys() for position in self._positions.get(key, ())]
        heapify(waiting)
        numbers: list[int] = []
        last = -1
        while waiting:
            position = heappop(waiting)
            if position <= last:
                continue
            last = position
            number, edit = self._edits[position]
            if edit.kind is EditKind.SPLIT and document_id not in edit.documents:
                continue
            changed = _CHANGES[edit.kind](edit, statements)
            if changed == statements:
                continue
            for key in changed.entity_keys() - statements.entity_keys():
                for later in self._positions.get(key, ()):
                    heappush(waiting, later)
            statements = changed
            numbers.append(number)
        return statements, tuple(numbers)


def targets(edit: Edit) -> tuple[Collection[str], tuple[str, str] | None]:
    """Return the entities (keys) and the relation (keys of its ends) whose mentions an edit may change."""
    if edit.kind not in _CHANGES:
        return (), None
    if edit.is_of_relation:
        first, second = sorted(edit.entities)
        return (), (first, second)
    return {*edit.entities, *((edit.key,) if edit.kind is EditKind.RENAME else ())}, None


def _rename(edit: Edit, stated: Statements) -> Statements:
    entities = (replace(m, surface=edit.name) if m.key == edit.key else m for m in stated.entities)
    return _joined(edit, replace(stated, entities=tuple(entities)))


def _joined(edit: Edit, stated: Statements, *, with_alias: bool = True) -> Statements:
    """Return the statements with the entities of an edit as the one that it leads to; their names become aliases."""
    sources = {key for key in edit.entities if key != edit.key}
    surface_by_key: dict[str, str] = {}
    for mention in stated.entities:
        if mention.key in sources:
            surface_by_key.setdefault(mention.key, mention.surface)
    if not surface_by_key:
        return stated

    def key_of(key: str) -> str:
        return edit.key if key in sources else key

    aliases = [replace(alias, key=key_of(alias.key)) for alias in stated.aliases]
    if with_alias:
        aliases += [AliasMention(key=edit.key, alias=key, surface=name) for key, name in surface_by_key.items()]
    relations = (replace(r, source=key_of(r.source), target=key_of(r.target)) for r in stated.relations)
    claims = (replace(c, subject=key_of(c.subject), object=key_of(c.object)) for c in stated.claims)
    return Statements(
        entities=tuple(replace(m, key=edit.key, surface=edit.name) if m.key in sources else m for m in stated.entities),
        relations=tuple(relation for relation in relations if relation.source != relation.target),
        aliases=tuple(dict.fromkeys(alias for alias in aliases if alias.key != alias.alias)),
        claims=tuple(replace(c, object="") if c.object == c.subject else c for c in claims),
    )


def _split(edit: Edit, stated: Statements) -> Statements:
    return _joined(edit, stated, with_alias=False)  # the name still stands for the other entity elsewhere


def _retype(edit: Edit, stated: Statements) -> Statements:
    if edit.is_of_relation:
        return _with_relations(edit, stated, lambda relation: replace(relation, keywords=edit.keywords))
    return _with_entities(edit, stated, lambda mention: replace(mention, type=edit.type))


def _redescribe(edit: Edit, stated: Statements) -> Statements:
    if edit.is_of_relation:
        return _with_relations(edit, stated, lambda relation: replace(relation, description=edit.description))
    return _with_entities(edit, stated, lambda mention: replace(mention, description=edit.description))


def _hide(edit: Edit, stated: Statements) -> Statements:
    if edit.is_of_relation:
        return replace(stated, relations=tuple(r for r in stated.relations if {r.source, r.target} != {*edit.entities}))
    hidden = set(edit.entities)
    claims = (c for c in stated.claims if c.subject not in hidden)
    return Statements(
        entities=tuple(m for m in stated.entities if m.key not in hidden),
        relations=tuple(r for r in stated.relations if not hidden & {r.source, r.target}),
        aliases=tuple(a for a in stated.aliases if a.key not in hidden),
        claims=tuple(replace(c, object="") if c.object in hidden else c for c in claims),
    )


def _with_entities(edit: Edit, stated: Statements, change: Callable[[EntityMention], EntityMention]) -> Statements:
    return replace(stated, entities=_changed(stated.entities, lambda m: m.key in edit.entities, change))


def _with_relations(edit: Edit, stated: Statements, change: Callable[[RelationMention], RelationMention]) -> Statements:
    ends = {*edit.entities}
    return replace(stated, relations=_changed(stated.relations, lambda r: {r.source, r.target} == ends, change))


T = TypeVar("T")


def _changed(mentions: Sequence[T], is_meant: Callable[[T], bool], change: Callable[[T], T]) -> tuple[T, ...]:
    return tuple(change(mention) if is_meant(mention) else mention for mention in mentions)


_CHANGES: Mapping[EditKind, Callable[[Edit, Statements], Statements]] = {
    EditKind.RENAME: _rename,
    EditKind.RETYPE: _retype,
    EditKind.REDESCRIBE: _redescribe,
    EditKind.HIDE: _hide,
    EditKind.MERGE: _joined,
    EditKind.SPLIT: _split,
}
