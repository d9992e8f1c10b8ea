"""Deriving: what a commit keeps of what derivations that are made on demand have made."""

from sqlalchemy import Connection

from quipu.model.delta import Delta
from quipu.model.derivation import NAMES, SENTENCES, SYNONYMS
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
    """Keep what was made; return how many texts on clusters were of what has changed.

    Sentences and synonyms that arrive when these are kept no longer, or not yet, are left out.
    """
    vectors = VectorChanges()
    lonely = dropping.drop(connection, delta.drop, revision, vectors) if delta.drop else frozenset()
    made.write(connection, delta.made)
    if delta.partition is not None:
        cluster_relations.drop(connection, partitions.write(connection, delta.partition, vectors))
    n_outdated = reports.write(connection, delta.reports, vectors) if delta.reports else 0
    if delta.cluster_relations is not None:
        n_outdated += cluster_relations.write(connection, delta.cluster_relations)
    vector_rows.retarget(connection, vectors, revision)
    synonyms.note(connection, backend, revision, lonely)
    if any(each.name == NAMES for each in delta.made):
        vector_rows.retarget(connection, entity_names.begin(connection, revision), revision)
    if delta.sentences and made.is_kept(connection, SENTENCES):
        vector_rows.retarget(connection, sentences.write(connection, delta.sentences), revision)
    if delta.synonyms is not None and made.is_kept(connection, SYNONYMS):
        changed = synonyms.write(connection, delta.synonyms, revision)
        synonyms.note(connection, backend, revision, changed)
    return n_outdated
