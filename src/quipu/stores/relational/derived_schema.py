"""The tables of derivations that are no part of every commit: what has changed, clusters, synonyms, sentences."""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from quipu.stores.relational.schema import metadata

# What commits changed, so that arrays outside the database catch up at the cost of the change. No canonical state.
# `kind`: "c" a chunk that came or went, "e" an entity whose names, and so its links, or whose synonyms changed,
# "m" an entity in a cluster of which something else is said, "s" a seal.
change = Table(
    "change",
    metadata,
    Column("revision", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("row", Integer, nullable=False),
    PrimaryKeyConstraint("revision", "kind", "row"),
    sqlite_with_rowid=False,
)

# Which derivations are kept up to date, since when, and by which identity (algorithm, version and parameters).
derivation = Table(
    "derivation",
    metadata,
    Column("name", Text, primary_key=True),
    Column("identity", Text, nullable=False),
    Column("revision", Integer, nullable=False),  # of the facts it was last made from
)

cluster = Table(
    "cluster",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("hierarchy", Text, nullable=False),
    Column("level", Integer, nullable=False),
    Column("parent", Integer),
    Column("n_entities", Integer, nullable=False),
    Column("inputs_hash", Text, nullable=False),
    Index("cluster_hierarchy", "hierarchy", "level"),
    Index("cluster_parent", "parent"),
)

# Entities in their finest cluster, once in each hierarchy.
membership = Table(
    "membership",
    metadata,
    Column("entity", Integer, nullable=False),
    Column("cluster", Integer, nullable=False),
    PrimaryKeyConstraint("entity", "cluster"),
    Index("membership_cluster", "cluster"),
    sqlite_with_rowid=False,
)

# What is written of a cluster: gone at once when something it was made from is removed.
report = Table(
    "report",
    metadata,
    Column("rid", Integer, primary_key=True),  # the cluster's
    Column("title", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("findings", Text, nullable=False),  # JSON array of [summary, explanation]
    Column("rating", Float, nullable=False),
    Column("chunks", Text, nullable=False),  # JSON array of chunk ids
    Column("inputs_hash", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("vector_hash", Text, nullable=False),
    Index("report_vector", "vector_hash"),
)

cluster_relation = Table(
    "cluster_relation",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("source", Integer, nullable=False),
    Column("target", Integer, nullable=False),
    Column("level", Integer, nullable=False),
    Column("description", Text, nullable=False),
    Column("weight", Integer, nullable=False),  # thousandths
    Column("n", Integer, nullable=False),
    Column("inputs_hash", Text, nullable=False),
    Column("model", Text, nullable=False),
    UniqueConstraint("source", "target"),
    Index("cluster_relation_target", "target"),
    Index("cluster_relation_model", "model"),
)

# Pairs of entities, the smaller row first, whose names are much alike.
synonym = Table(
    "synonym",
    metadata,
    Column("first", Integer, nullable=False),
    Column("second", Integer, nullable=False),
    Column("similarity", Integer, nullable=False),  # millionths
    PrimaryKeyConstraint("first", "second"),
    Index("synonym_second", "second"),
    sqlite_with_rowid=False,
)

# The vector of a name: a text, found again by its hash; a row for each entity while these vectors are kept.
# `is_compared`: 1 once it has been looked up which other names are much like it; `revision`: since when it may be.
entity_name = Table(
    "entity_name",
    metadata,
    Column("rid", Integer, primary_key=True),  # the entity's
    Column("vector_hash", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("is_compared", Integer, nullable=False),
    Index("entity_name_vector", "vector_hash"),
    Index("entity_name_new", "is_compared", sqlite_where=text("is_compared = 0")),
)

sentence = Table(
    "sentence",
    metadata,
    Column("rid", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("chunk", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("start_char", Integer, nullable=False),  # within the chunk's text
    Column("end_char", Integer, nullable=False),
    Column("vector_hash", Text, nullable=False),
    UniqueConstraint("chunk", "ordinal"),
    Index("sentence_vector", "vector_hash"),
)

TABLES = (change, derivation, cluster, membership, report, cluster_relation, synonym, entity_name, sentence)
