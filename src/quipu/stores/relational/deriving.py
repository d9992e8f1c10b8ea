"""Deriving: what a commit keeps of what derivations that are made on demand have made."""

from sqlalchemy import Connection

from quipu.model.delta import Delta
from quipu.model.derivation import NAMES
from quipu.stores.relational import (
    cluster_relations,
    dropping,
    entity_names,
    made,
    partitions,
    reports,
    sentences,
    synonyms,
    vector_rows,
)
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.vector_rows import VectorChanges


def write(connection: Connection, backend: Backend, delta: Delta, revision: int) -> int:
    """Keep what was made; return how many texts on clusters were of what has changed."""
    vectors = VectorChanges()
    if delta.partition is not None:
        cluster_relations.drop(connection, partitions.write(connection, delta.partition, vectors))
    n_outdated = reports.write(connection, delta.reports, vectors) if delta.reports else 0
    if delta.cluster_relations is not None:
        n_outdated += cluster_relations.write(connection, delta.cluster_relations)
    lonely = dropping.drop(connection, delta.drop, revision, vectors) if delta.drop else frozenset()
    vector_rows.retarget(connection, vectors, revision)
    synonyms.note(connection, backend, revision, lonely)
    made.write(connection, delta.made)
    if any(each.name == NAMES for each in delta.made):
        vector_rows.retarget(connection, entity_names.begin(connection, revision), revision)
    if delta.sentences:
        vector_rows.retarget(connection, sentences.write(connection, delta.sentences), revision)
    if delta.synonyms is not None:
        changed = synonyms.write(connection, delta.synonyms, revision)
        synonyms.note(connection, backend, revision, changed)
    return n_outdated
