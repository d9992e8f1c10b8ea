"""The tables. `rid` columns are surrogate row numbers: they join tables and never leave this package."""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from quipu.model.chat import ReplyLifetime
from quipu.stores.relational.space_code import SpaceCode

metadata = MetaData()

# Key/value: schema number, revision, tokenizer identity, the next vector row.
meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

# ---- facts -----------------------------------------------------------------------------------------------------------

document = Table(
    "document",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("version", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("metadata", Text, nullable=False),  # JSON object
    Column("content_hash", Text, nullable=False),
    Column("added_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    # The revision that last took back something the document said, or by which it was added.
    Column("stands_since", Integer, nullable=False, server_default="0"),
)

# Metadata again, a row a value, so that filters are plain comparisons. `text` is casefolded.
metadata_value = Table(
    "metadata_value",
    metadata,
    Column("document", Integer, nullable=False),
    Column("field", Text, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("number", Float),
    PrimaryKeyConstraint("document", "field", "ordinal"),
    Index("metadata_value_field", "field", "text"),
    sqlite_with_rowid=False,
)

chunk = Table(
    "chunk",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("document", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("page", Integer),
    Column("headings", Text, nullable=False),  # JSON array
    Column("header", Text, nullable=False, server_default=""),
    Column("n_tokens", Integer, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("vector_hash", Text, nullable=False),
    Column("error", Text, nullable=False),
    Index("chunk_document", "document", "ordinal"),
    Index("chunk_vector", "vector_hash"),
)

# `description_order` ranks an entity's distinct descriptions by content alone: definitions first, then by digest;
# -1 where there is none.
entity_mention = Table(
    "entity_mention",
    metadata,
    Column("chunk", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("entity", Integer, nullable=False),
    Column("surface", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("description_order", BigInteger, nullable=False),
    Column("is_definition", Integer, nullable=False),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    PrimaryKeyConstraint("chunk", "ordinal"),
    Index("entity_mention_entity", "entity", "description_order"),
    sqlite_with_rowid=False,
)

relation_mention = Table(
    "relation_mention",
    metadata,
    Column("chunk", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("relation", Integer, nullable=False),
    Column("is_reversed", Integer, nullable=False),
    Column("keywords", Text, nullable=False),  # JSON array
    Column("description", Text, nullable=False),
    Column("description_order", BigInteger, nullable=False),
    Column("weight", Integer, nullable=False),  # thousandths, so that sums are exact in any order
    PrimaryKeyConstraint("chunk", "ordinal"),
    Index("relation_mention_relation", "relation", "description_order"),
    sqlite_with_rowid=False,
)

alias_mention = Table(
    "alias_mention",
    metadata,
    Column("chunk", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("entity", Integer, nullable=False),
    Column("alias", Text, nullable=False),
    Column("surface", Text, nullable=False),
    PrimaryKeyConstraint("chunk", "ordinal"),
    Index("alias_mention_entity", "entity"),
    Index("alias_mention_alias", "alias"),
    sqlite_with_rowid=False,
)

# `object` is the other entity a claim names, if any.
claim_mention = Table(
    "claim_mention",
    metadata,
    Column("chunk", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("entity", Integer, nullable=False),
    Column("object", Integer),
    Column("type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("dates", Text, nullable=False),
    Column("description", Text, nullable=False),
    PrimaryKeyConstraint("chunk", "ordinal"),
    Index("claim_mention_entity", "entity"),
    sqlite_with_rowid=False,
)

# A person's overlay: merge, split, rename, retype, redescribe, hide.
edit = Table(
    "edit",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),  # JSON object
    Column("made_at", Text, nullable=False),
)

# What extractors and models replied; `lifetime` says what ends it, see model.chat.Lifetime.
reply = Table(
    "reply",
    metadata,
    Column("input_hash", Text, primary_key=True),
    Column("payload", LargeBinary, nullable=False),  # deflated UTF-8
    Column("lifetime", Text, nullable=False, server_default=ReplyLifetime.DOCUMENTS.value),
    Index("reply_revision", "lifetime", sqlite_where=text(f"lifetime = '{ReplyLifetime.REVISION.value}'")),
)

# `version`: 0 for an extraction, which a document needs while one of its chunks has that input; for a single call, the
# version of the document it was made for.
reply_document = Table(
    "reply_document",
    metadata,
    Column("document", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("version", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("document", "input_hash"),
    Index("reply_document_input", "input_hash"),
    sqlite_with_rowid=False,
)

# Replies made from other replies, and these: they go with the first of them.
reply_source = Table(
    "reply_source",
    metadata,
    Column("input_hash", Text, nullable=False),
    Column("source", Text, nullable=False),
    PrimaryKeyConstraint("input_hash", "source"),
    Index("reply_source_source", "source"),
    sqlite_with_rowid=False,
)

# ---- folds of mentions, kept in the transaction that changes the facts -----------------------------------------------

# Where the description of an entity or relation comes from: all its descriptions joined, as many as fit while they wait
# for a summary, or a summary of them all.
JOINED, WAITING, SUMMARISED = 0, 1, 2

entity = Table(
    "entity",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("n_mentions", Integer, nullable=False),
    Column("n_chunks", Integer, nullable=False),
    Column("degree", Integer, nullable=False),
    Column("vector_hash", Text, nullable=False),
    Column("described_by", Integer, nullable=False, server_default="0"),
    Index("entity_vector", "vector_hash"),
    Index("entity_unsummarised", "described_by", sqlite_where=text(f"described_by = {WAITING}")),
)

entity_surface = Table(
    "entity_surface",
    metadata,
    Column("entity", Integer, nullable=False),
    Column("surface", Text, nullable=False),
    Column("n", Integer, nullable=False),
    PrimaryKeyConstraint("entity", "surface"),
    sqlite_with_rowid=False,
)

entity_type = Table(
    "entity_type",
    metadata,
    Column("entity", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("n", Integer, nullable=False),
    PrimaryKeyConstraint("entity", "type"),
    sqlite_with_rowid=False,
)

relation = Table(
    "relation",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("source", Integer, nullable=False),
    Column("target", Integer, nullable=False),
    Column("keywords", Text, nullable=False),  # JSON array
    Column("description", Text, nullable=False),
    Column("weight", Integer, nullable=False),  # thousandths
    Column("n_mentions", Integer, nullable=False),
    Column("n_chunks", Integer, nullable=False),
    Column("vector_hash", Text, nullable=False),
    Column("described_by", Integer, nullable=False, server_default="0"),
    UniqueConstraint("source", "target"),
    Index("relation_target", "target"),
    Index("relation_vector", "vector_hash"),
    Index("relation_unsummarised", "described_by", sqlite_where=text(f"described_by = {WAITING}")),
)

relation_keyword = Table(
    "relation_keyword",
    metadata,
    Column("relation", Integer, nullable=False),
    Column("keyword", Text, nullable=False),
    Column("n", Integer, nullable=False),
    PrimaryKeyConstraint("relation", "keyword"),
    sqlite_with_rowid=False,
)

# Summaries of the descriptions whose hash is `inputs_hash`, shown in place of their join; dropped when these change.
summary = Table(
    "summary",
    metadata,
    Column("kind", Text, nullable=False),  # entity | relation
    Column("owner", Integer, nullable=False),
    Column("inputs_hash", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("model", Text, nullable=False),
    PrimaryKeyConstraint("kind", "owner"),
)

# ---- links: every known name (an entity's key or a stated alias) × every chunk it occurs in --------------------------

name = Table(
    "name",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("anchor", Text, nullable=False),
    Column("n", Integer, nullable=False),  # entities and alias mentions with this key
    Index("name_anchor", "anchor"),
)

link = Table(
    "link",
    metadata,
    Column("name", Integer, nullable=False),
    Column("chunk", Integer, nullable=False),
    Column("n", Integer, nullable=False),
    PrimaryKeyConstraint("name", "chunk"),
    Index("link_chunk", "chunk"),
    sqlite_with_rowid=False,
)

# ---- vectors ---------------------------------------------------------------------------------------------------------

model = Table(
    "model",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("identity", Text, nullable=False, unique=True),
    Column("dimension", Integer, nullable=False),
    Column("state", Text, nullable=False),  # live | building
)

vector = Table(
    "vector",
    metadata,
    Column("rid", Integer, primary_key=True),  # rises, never reused: see meta "vector_row"
    Column("model", Integer, nullable=False),
    Column("space", SpaceCode, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),  # float16, little-endian
    UniqueConstraint("text_hash", "model"),
    Index("vector_space", "model", "space"),
)

vector_gone = Table(
    "vector_gone",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("model", Integer, nullable=False),
    Column("space", SpaceCode, nullable=False),
    Column("revision", Integer, nullable=False),
    Index("vector_gone_revision", "model", "space", "revision"),
)

# Texts waiting for a vector.
vector_todo = Table(
    "vector_todo",
    metadata,
    Column("model", Integer, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("space", SpaceCode, nullable=False),
    PrimaryKeyConstraint("model", "text_hash"),
    sqlite_with_rowid=False,
)

# ---- work ------------------------------------------------------------------------------------------------------------

job = Table(
    "job",
    metadata,
    Column("rid", Integer, primary_key=True),
    Column("document", Text, nullable=False, unique=True),
    Column("status", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("chunking", Text, nullable=False, server_default=""),  # JSON object; "" for the settings' own
    Column("data", LargeBinary),
    Column("error", Text, nullable=False),
    Column("owner", Text, nullable=False),  # "" while nobody works on it
    Column("lease_until", Float, nullable=False),
    Column("added_at", Text, nullable=False),
    Index("job_status", "status", "rid"),
)

# What models were asked and what it cost, see model.usage.UsageRow; money in millionths.
usage = Table(
    "usage",
    metadata,
    Column("day", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("n_calls", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("n_unpriced", Integer, nullable=False),
    Column("n_interrupted", Integer, nullable=False),
    Column("interrupted_input_tokens", BigInteger, nullable=False),
    Column("interrupted_cached_tokens", BigInteger, nullable=False),
    Column("interrupted_output_tokens", BigInteger, nullable=False),
    Column("interrupted_cost", BigInteger, nullable=False),
    PrimaryKeyConstraint("day", "stage", "model", "subject"),
    sqlite_with_rowid=False,
)
