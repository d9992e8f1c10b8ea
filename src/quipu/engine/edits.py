"""Edits: a person's corrections of the graph, by the names that a person uses, and their history."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from quipu.derive.derivation import embed_stale
from quipu.engine.components import Components
from quipu.engine.duplicates import DuplicateFinder
from quipu.engine.lookups import check_documents, named_entity
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.ingest.documents import content_hash, extractor_input, read_document
from quipu.ingest.extraction import chunk_facts
from quipu.ingest.graph_import.extractor import ImportedExtractor, identity_of
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.document import SourceDocument
from quipu.model.edit import (
    DuplicateDecision,
    DuplicatePair,
    Edit,
    EditKind,
    EditPage,
    EditRequest,
    RecordedEdit,
    UndoResult,
    targets,
)
from quipu.model.event import ignore_event
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import UNKNOWN_TYPE, Entity
from quipu.model.ids import digest, relation_id, stable_repr
from quipu.model.imported_graph import ImportedExtraction
from quipu.ports.history import EditStore
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.text.names import MAX_NAME_CHARS, entity_key

_MAX_DIGITS = 20  # of the id of an edit
MAX_MERGES = 1_000  # duplicates that are read at once
AUTOMATIC = "quipu"  # the author of merges that no person decided
MAX_TEXT_CHARS = 20_000  # of a description, and of a reason
FOLDER = "edits/"  # where the ids of documents begin that state what a person created
_TWO = "Name one entity, or the two ends of a relation."


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of an index: corrections of the graph that survive updates and can be undone."""

    components: Components
    lease: Callable[[Components], AbstractAsyncContextManager[None]]
    finder: DuplicateFinder

    async def make(self, request: EditRequest) -> RecordedEdit:
        """Make an edit; the next question sees it. It holds for later documents, too, until it is undone.

        Vectors of changed texts are computed; `refresh` does the rest, such as summaries. Raises NotFound for an
        unknown entity, relation or document, and InvalidInput for an edit that lacks something or changes nothing.
        """
        edit = await self._resolved(request)
        publish: list[DocumentFacts] = []
        if edit.kind is EditKind.CREATE:
            publish = [await self._statement(edit, request)]
            edit = replace(edit, documents=(publish[0].id,))
        committed = await self.components.store.commit(Delta(edits=[edit], publish=publish))
        await self._embed()
        return (await self._store.edits(committed.edits))[0]

    async def preview(self, request: EditRequest) -> RecordedEdit:
        """Return what `make` would record: with the id 0, and the number of chunks that it would change."""
        edit = await self._resolved(request)
        async with self.components.store.view() as view:
            n_chunks = await _count_chunks(view, edit)
        return RecordedEdit(id=0, edit=edit, made_at="", n_chunks=n_chunks, has_effect=True)

    async def undo(self, ids: Sequence[int]) -> UndoResult:
        """Undo edits: the state is then as if they had never been made.

        Raises NotFound for an unknown id, and InvalidInput for an edit that is undone already.
        """
        known = {recorded.id: recorded for recorded in await self._store.edits(tuple(ids))}
        for number in ids:
            if number not in known:
                raise _unknown(number)
            if known[number].undone_at:
                raise InvalidInput(f"The edit {number} is undone already.", remedy="Make it again if you want it back.")
        before = {edit.id for edit in await self._store.edits(with_undone=False) if not edit.has_effect}
        created = [edit.edit.documents[0] for edit in known.values() if edit.edit.kind is EditKind.CREATE]
        committed = await self.components.store.commit(Delta(undo=list(ids), remove=created))
        await self._embed()
        active = await self._store.edits(with_undone=False)
        lost = tuple(edit for edit in active if not edit.has_effect and edit.id not in before)
        return UndoResult(undone=tuple(await self._store.edits(committed.undone)), without_target=lost)

    async def history(self, entity: str = "", *, with_undone: bool = True, cursor: str = "", k: int = 50) -> EditPage:
        """Return a page of edits, the newest first; with `entity`, only those that name it (a name or key).

        `cursor` is that of the page before. Edits with `has_effect` False, unless they are undone, lack their target.
        """
        key = entity_key(entity) if entity else ""
        if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < _MAX_DIGITS):
            raise InvalidInput(f"{cursor[:80]!r} is no cursor.", remedy="Give that of a page of edits.")
        before = int(cursor) if cursor else None
        listed = await self._store.edits(entity=key, with_undone=with_undone, before=before, k=k + 1)
        return EditPage(edits=tuple(listed[:k]), cursor=str(listed[k - 1].id) if len(listed) > k > 0 else "")

    async def edit(self, number: int) -> RecordedEdit:
        """Return an edit. Raises NotFound."""
        edits = await self._store.edits((number,))
        if not edits:
            raise _unknown(number)
        return edits[0]

    async def losing(self, documents: Sequence[str]) -> tuple[tuple[RecordedEdit, ...], tuple[RecordedEdit, ...]]:
        """Return the edits that have no target once these documents are gone, and those that change fewer chunks."""
        if self.components.edits is None:
            return (), ()
        n_lost = await self._store.n_chunks_in(documents)
        edits = [edit for edit in await self._store.edits(with_undone=False) if edit.has_effect]
        created = {
            edit.id for edit in edits if edit.edit.kind is EditKind.CREATE and {*edit.edit.documents} <= {*documents}
        }
        lost = [edit for edit in edits if edit.id in created or 0 < edit.n_chunks == n_lost.get(edit.id)]
        return tuple(lost), tuple(edit for edit in edits if edit.id in n_lost and edit not in lost)

    async def duplicates(self, entity: str = "", *, above: float = 0.6, k: int = 50) -> tuple[DuplicatePair, ...]:
        """Return pairs of entities that may be one thing under two names, the most certain first, at most k.

        With `entity` (a name), only pairs with it. `above` is the least score, from 0 to 1. Pairs that a person has
        told apart are left out. Names are also compared by their vectors where the derivation `synonyms` is kept.
        Raises NotFound for an unknown name.
        """
        return await self._duplicates(entity, above=above, k=k)

    async def _duplicates(
        self, entity: str = "", *, undone: AbstractSet[tuple[str, str]] = frozenset(), above: float, k: int
    ) -> tuple[DuplicatePair, ...]:
        edits = await self._store.edits(with_undone=False)
        apart = undone | {_ordered(*e.edit.entities) for e in edits if e.edit.kind is EditKind.DISTINCT}
        async with self.components.store.view() as view:
            key = (await named_entity(view, entity)).key if entity else ""
            return tuple(await self.finder.find(view, of=key, apart=apart, above=above, k=k))

    async def merge_duplicates(self, above: float) -> tuple[RecordedEdit, ...]:
        """Merge the pairs with a score of `above` or more, each once, into the entity with more mentions.

        Pairs that a person has told apart, and merges that were undone, stay apart. Each merge is an edit that names
        its score and reasons. It depends on what the index holds when it is made, so on the order of documents.
        """
        recorded: list[RecordedEdit] = []
        merges = [e for e in await self._store.edits() if e.undone_at and e.edit.kind is EditKind.MERGE]
        undone = {_ordered(*e.edit.entities) for e in merges if len(e.edit.entities) == 2}
        while pairs := await self._duplicates(undone=undone, above=above, k=MAX_MERGES):
            seen: set[str] = set()
            for pair in pairs:
                ends = sorted((pair.first, pair.second), key=lambda entity: (-entity.n_mentions, entity.key))
                if seen.isdisjoint(keys := {entity.key for entity in ends}):
                    seen |= keys
                    reason = f"score {pair.candidate.score:.2f}: {'; '.join(pair.candidate.reasons)}"
                    names = tuple(entity.key for entity in ends)
                    request = EditRequest(kind=EditKind.MERGE, entities=names, author=AUTOMATIC, reason=reason)
                    recorded.append(await self.make(request))
        return tuple(recorded)

    async def decide(
        self, decisions: Sequence[DuplicateDecision], *, author: str = "", reason: str = ""
    ) -> tuple[RecordedEdit, ...]:
        """Merge entities, or tell them apart, as a person decided; return the edits.

        Decisions about entities that are one already are passed over. Raises as `make`, after the decisions before.
        """
        recorded: list[RecordedEdit] = []
        for decision in decisions:
            if decision.kind not in (EditKind.MERGE, EditKind.DISTINCT):
                raise InvalidInput(f"{decision.kind.value!r} is no decision.", remedy="Decide merge or distinct.")
            names = (decision.first, decision.second)
            async with self.components.store.view() as view:
                keys = {(await named_entity(view, name)).key for name in names}
            if len(keys) == 2:
                request = EditRequest(
                    kind=decision.kind, entities=names, name=decision.name, author=author, reason=reason
                )
                recorded.append(await self.make(request))
        return tuple(recorded)

    @property
    def _store(self) -> EditStore:
        if self.components.edits is None:
            raise Unavailable("This index keeps no edits.", remedy="Use an index whose store does.")
        return self.components.edits

    async def _embed(self) -> None:
        components = self.components
        async with self.lease(components):
            await embed_stale(components.store, components.embedder, ignore_event)

    async def _resolved(self, request: EditRequest) -> Edit:
        """Return the edit with keys in place of names. Raises NotFound and InvalidInput."""
        _check(request)
        async with self.components.store.view() as view:
            if request.kind is EditKind.CREATE and len(request.entities) == 1:
                return await _new_entity(view, request)
            entities = [await named_entity(view, name) for name in request.entities]
            edit = _edit(request, [entity.key for entity in entities])
            await check_documents(view, edit.documents)
            if request.kind is EditKind.MERGE:
                return _merge(edit, request, entities)
            if request.kind in (EditKind.RENAME, EditKind.SPLIT):
                return await _with_new_name(view, edit, entities[0])
            if edit.is_of_relation:
                await _check_relation(view, edit, entities)
            return edit

    async def _statement(self, edit: Edit, request: EditRequest) -> DocumentFacts:
        """Return the document that states what a person creates. Raises InvalidInput if it exists already."""
        names = [name.strip() for name in request.entities]
        recording = _recording(names, edit)
        document_id = f"{FOLDER}{digest('edit', stable_repr(edit))[:12]}"
        recording = replace(recording, document=document_id)
        extractor = ImportedExtractor({document_id: recording}, identity_of(recording))
        config = replace(self.components.ingest_config, extractor=extractor)
        async with self.components.store.view() as view:
            if await view.documents([document_id]):
                raise InvalidInput("Exactly this was created before.", remedy="`quipu history` lists all edits.")
        title = f"{' — '.join(names)}{f' ({edit.type})' if edit.type else ''}"
        text = "\n\n".join(filter(None, [title, edit.description, ", ".join(edit.keywords)]))
        source = SourceDocument(id=document_id, content=text.encode(), title=title, media_type="text/plain")
        document = await read_document(source, config)
        inputs = [extractor_input(chunk, (document_id,)) for chunk in document.chunks]
        extractions = [result.extraction async for result in extractor.extract(inputs)]
        facts = [
            chunk_facts(chunk, extraction)
            for chunk, extraction in zip(document.chunks, extractions, strict=True)
            if extraction is not None
        ]
        return DocumentFacts(
            id=document_id,
            title=title,
            content_hash=content_hash(source, config),
            chunks=tuple(facts),
            source=edit.author,
            text=document.parsed.text,
            original=source.content if config.keep_originals else None,
        )


def _unknown(number: int) -> NotFound:
    return NotFound(f"There is no edit {number}.", remedy="`quipu history` lists all edits.")


def _recording(names: Sequence[str], edit: Edit) -> ImportedExtraction:
    if len(names) == 1:
        entity = ExtractedEntity(
            name=names[0], type=edit.type or UNKNOWN_TYPE, description=edit.description, is_definition=True
        )
        return ImportedExtraction(document="", entities=(entity,))
    relation = ExtractedRelation(source=names[0], target=names[1], keywords=edit.keywords, description=edit.description)
    return ImportedExtraction(document="", relations=(relation,))


def _edit(request: EditRequest, keys: Sequence[str]) -> Edit:
    return Edit(
        kind=request.kind,
        entities=tuple(keys),
        name=request.name.strip(),
        type=request.type.strip(),
        description=request.description.strip(),
        keywords=tuple(keyword.strip() for keyword in request.keywords),
        documents=tuple(dict.fromkeys(request.documents)),
        author=request.author,
        reason=request.reason.strip(),
    )


# What an edit of so many entities (2: two or more, for MERGE) needs, and what it may have besides.
_VALUES: Mapping[tuple[EditKind, int], tuple[str, str]] = {
    (EditKind.CREATE, 1): ("", "type description"),
    (EditKind.CREATE, 2): ("", "description keywords"),
    (EditKind.RENAME, 1): ("name", ""),
    (EditKind.RETYPE, 1): ("type", ""),
    (EditKind.RETYPE, 2): ("keywords", ""),
    (EditKind.REDESCRIBE, 1): ("description", ""),
    (EditKind.REDESCRIBE, 2): ("description", ""),
    (EditKind.HIDE, 1): ("", ""),
    (EditKind.HIDE, 2): ("", ""),
    (EditKind.MERGE, 2): ("", "name"),
    (EditKind.SPLIT, 1): ("name documents", ""),
    (EditKind.DISTINCT, 2): ("", ""),
}
_SETTABLE = ("name", "type", "description", "keywords", "documents")


def _check(request: EditRequest) -> None:
    """Raise InvalidInput for a request that lacks a value, has one too many, or one that is too long."""
    n_entities = min(len(request.entities), 2) if request.kind is EditKind.MERGE else len(request.entities)
    counts = [n for kind, n in _VALUES if kind is request.kind]
    if n_entities not in counts:
        expected = " or ".join(map(str, counts)) + (" or more" if request.kind is EditKind.MERGE else "")
        raise InvalidInput(
            f"{request.kind.value!r} is about {expected} entities, not {len(request.entities)}.",
            remedy="Two names stand for the relation between them, except where entities are merged or told apart.",
        )
    required, optional = (names.split() for names in _VALUES[request.kind, n_entities])
    for name in _SETTABLE:
        value = getattr(request, name)
        is_set = bool(value.strip() if isinstance(value, str) else value)
        if name in required and not is_set:
            raise InvalidInput(f"{request.kind.value!r} needs a value for {name!r}.", remedy=f"Give {name!r}.")
        if is_set and name not in (*required, *optional):
            raise InvalidInput(f"{request.kind.value!r} does not change {name!r}.", remedy=f"Leave {name!r} out.")
    for text, limit in (
        *((text, MAX_NAME_CHARS) for text in (*request.entities, request.name, request.type, *request.keywords)),
        *((text, MAX_TEXT_CHARS) for text in (request.description, request.reason, request.author)),
    ):
        if len(text) > limit:
            raise InvalidInput(f"{text[:40]!r}… has {len(text):,} characters; at most {limit:,} are allowed.")
        if "\0" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
            raise InvalidInput(f"{text[:40]!r} holds characters that are no text.", remedy="Write it as UTF-8.")


async def _new_entity(view: ReadView, request: EditRequest) -> Edit:
    name = request.entities[0].strip()
    edit = _edit(request, [_key_of(name)])
    if keys := (await view.keys_by_name(edit.entities)).get(edit.entities[0]):
        (entity,) = await view.entities(keys[:1])
        raise InvalidInput(f"{name!r} is a name of {entity.name!r}.", remedy="Edit that, or give another name.")
    return edit


def _merge(edit: Edit, request: EditRequest, entities: Sequence[Entity]) -> Edit:
    """Return a merge into the entity with the given name, by default the first. Raises InvalidInput for one entity."""
    if len({entity.key for entity in entities}) < 2:
        names = ", ".join(repr(name) for name in request.entities)
        raise InvalidInput(f"{names} are one entity, {entities[0].name!r}, already.", remedy="Name different entities.")
    name = edit.name or entities[0].name
    key = _key_of(name) if edit.name else entities[0].key
    return replace(edit, entities=tuple(dict.fromkeys(edit.entities)), key=key, name=name)


async def _with_new_name(view: ReadView, edit: Edit, entity: Entity) -> Edit:
    """Return a rename or split with the key of its new name. Raises InvalidInput for a name that is taken."""
    key = _key_of(edit.name)
    if key == entity.key and (edit.kind is EditKind.SPLIT or edit.name == entity.name):
        raise InvalidInput(f"The entity is called {entity.name!r} already.", remedy="Give another name.")
    if key != entity.key and await view.entities([key]):
        raise InvalidInput(f"There is another entity {edit.name!r}.", remedy="Merge the two, or give another name.")
    if edit.kind is EditKind.SPLIT:
        chunks = (await view.occurrences(OccurrenceKind.MENTION, [entity.key])).get(entity.key, {})
        documents = {chunk.document_id for chunk in await view.chunks(list(chunks))}
        if missing := [document for document in edit.documents if document not in documents]:
            raise InvalidInput(f"{missing[0]!r} does not mention {entity.name!r}.", remedy="Leave it out.")
    return replace(edit, key=key)


async def _check_relation(view: ReadView, edit: Edit, entities: Sequence[Entity]) -> None:
    """Raise NotFound where a relation to edit does not exist, InvalidInput where one to create does, or is a loop."""
    first, second = entities
    if first.key == second.key:
        raise InvalidInput(f"Both names stand for {first.name!r}.", remedy=_TWO)
    exists = bool(await view.relations([relation_id(first.key, second.key)]))
    if edit.kind is EditKind.CREATE and exists:
        raise InvalidInput(f"{first.name!r} and {second.name!r} are related already.", remedy="Redescribe it.")
    if edit.kind is not EditKind.CREATE and not exists:
        raise NotFound(f"Nothing relates {first.name!r} to {second.name!r}.", remedy="`quipu show` lists relations.")


def _ordered(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _key_of(name: str) -> str:
    key = entity_key(name)
    if not key:
        raise InvalidInput(f"{name!r} is no name.", remedy="Give a name with letters or digits.")
    return key


async def _count_chunks(view: ReadView, edit: Edit) -> int:
    """Return how many chunks mention what an edit is about."""
    keys, ends = targets(edit)
    if ends is not None:
        identifier = relation_id(*ends)
        return len((await view.occurrences(OccurrenceKind.RELATION, [identifier])).get(identifier, {}))
    chunks = {
        chunk
        for by_chunk in (await view.occurrences(OccurrenceKind.MENTION, sorted(keys))).values()
        for chunk in by_chunk
    }
    if edit.kind is EditKind.SPLIT:
        return sum(chunk.document_id in edit.documents for chunk in await view.chunks(sorted(chunks)))
    return len(chunks)
