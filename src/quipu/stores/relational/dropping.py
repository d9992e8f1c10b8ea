"""Dropping: of a derivation that is kept no longer nothing stays in the tables."""

from collections.abc import Sequence

from sqlalchemy import Connection, Table, delete, select

from quipu.model.cluster import Hierarchy, Partition
from quipu.model.derivation import NAMES, REPORTS, SENTENCES, SYNONYMS
from quipu.ports.store import VectorSpace
from quipu.stores.relational import derived_schema as d
from quipu.stores.relational import partitions, reports, sentences, synonyms
from quipu.stores.relational.vector_rows import VectorChanges

_HIERARCHIES = {"communities": Hierarchy.COMMUNITIES, "hierarchy": Hierarchy.AGGREGATES}
_EMBEDDED: dict[str, tuple[VectorSpace, Table]] = {
    NAMES: (VectorSpace.NAME, d.entity_name),
    SENTENCES: (VectorSpace.SENTENCE, d.sentence),
}
_k = d.cluster.c


def drop(connection: Connection, names: Sequence[str], revision: int, vectors: VectorChanges) -> frozenset[int]:
    """Forget these derivations and what they hold; return the entities that lost synonyms: these go with names."""
    names = [*names, SYNONYMS] if NAMES in names else names
    connection.execute(delete(d.derivation).where(d.derivation.c.name.in_(names)))
    for name in names:
        if name == REPORTS:  # of communities
            of = select(_k.rid).where(_k.hierarchy == Hierarchy.COMMUNITIES.value)
            reports.drop(connection, connection.execute(of).scalars().all(), vectors)
        elif name in _HIERARCHIES:
            partition = Partition(hierarchy=_HIERARCHIES[name], clusters=(), revision=revision)
            partitions.write(connection, partition, vectors)
            relation = d.cluster_relation
            connection.execute(delete(relation).where(relation.c.source.not_in(select(_k.rid))))
        elif name in _EMBEDDED:
            _drop_embedded(connection, *_EMBEDDED[name], vectors)
    if SENTENCES in names:
        sentences.restart(connection)
    return synonyms.restart(connection, revision) if SYNONYMS in names else frozenset()


def _drop_embedded(connection: Connection, space: VectorSpace, owner: Table, vectors: VectorChanges) -> None:
    for text_hash in connection.execute(select(owner.c.vector_hash).distinct()).scalars().all():
        vectors.moved(space, text_hash, "")
    connection.execute(delete(owner))
