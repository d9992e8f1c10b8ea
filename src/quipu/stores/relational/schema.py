"""The tables. `rid` columns are row numbers: they join tables and never leave this package."""

from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

from quipu.model.chat import ReplyLifetime
from quipu.ports.store import VectorSpace

metadata = sa.MetaData()

# Whole numbers have 64 bits, as SQLite's INTEGER has.
INTEGER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# Texts are ordered by code point, whatever the collation of the database.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

SPACE_CODES = dict(zip(VectorSpace, "cernspq", strict=True))
_SPACE_BY_CODE = {code: space for space, code in SPACE_CODES.items()}


class SpaceCode(sa.TypeDecorator[VectorSpace]):
    """A vector space, stored as one letter: five vectors of 384 dimensions then fit into a page instead of four."""

    impl = TEXT
    cache_ok = True

    def process_bind_param(self, value: VectorSpace | None, dialect: object) -> str | None:
        """Return the letter of a space."""
        return None if value is None else SPACE_CODES[value]

    def process_result_value(self, value: str | None, dialect: object) -> VectorSpace | None:
        """Return the space of a letter, None for an unknown letter."""
        return _SPACE_BY_CODE.get(value or "")


def _rid() -> sa.Column[int]:
    return sa.Column("rid", INTEGER, primary_key=True, autoincrement=False)


def _unique(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False, unique=True)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, TEXT, nullable=False) for name in names]


def _integers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, INTEGER, nullable=False) for name in names]


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _table(name: str, *parts: SchemaItem, sqlite_with_rowid: bool = True) -> sa.Table:
    return sa.Table(name, metadata, *parts, sqlite_with_rowid=sqlite_with_rowid)


_key, _index = sa.PrimaryKeyConstraint, sa.Index
_clustered = partial(_table, sqlite_with_rowid=False)  # SQLite stores the rows in the order of the primary key


def _pairs(name: str, first: sa.Column[Any], second: sa.Column[Any], *others: sa.Column[Any]) -> sa.Table:
    """Return a table of pairs, which are found from either side."""
    return _clustered(
        name, first, second, *others, _key(first.name, second.name), _index(f"{name}_{second.name}", second.name)
    )


def _value_counts(name: str, owner: str, value: str) -> sa.Table:
    """Return a table of how many mentions give each value to an owner."""
    key = _key(owner, value)
    return _clustered(name, *_integers(owner), *_texts(value), *_integers("n"), key)


# Single values by key: schema number, revision, tokenizer identity, the next vector row and others.
meta = _table("meta", sa.Column("key", TEXT, primary_key=True), *_texts("value"))

document = _table(
    "document",
    _rid(),
    _unique("id"),
    *_integers("version"),
    *_texts("title", "status", "source", "media_type"),
    *_texts("metadata", "content_hash", "added_at", "updated_at"),  # metadata: JSON object
    # `stands_since`: the revision that added it, or last removed something it stated. Times: see model.validity.
    sa.Column("stands_since", INTEGER, nullable=False, server_default="0"),
    *(sa.Column(name, TEXT, nullable=False, server_default="") for name in ("since", "holds_from", "holds_until")),
)

# Metadata again, one row for each value, so that filters are plain comparisons. `text` is casefolded.
metadata_value = _clustered(
    "metadata_value",
    *_integers("document"),
    *_texts("field"),
    *_integers("ordinal"),
    *_texts("text"),
    sa.Column("number", sa.Float),
    _key("document", "field", "ordinal"),
    _index("metadata_value_field", "field", "text"),
)

chunk = _table(
    "chunk",
    _rid(),
    _unique("id"),
    *_integers("document", "ordinal"),
    *_texts("text"),
    *_integers("start_char", "end_char"),
    sa.Column("page", INTEGER),
    *_texts("headings"),  # JSON array
    sa.Column("header", TEXT, nullable=False, server_default=""),
    *_integers("n_tokens"),
    *_texts("text_hash", "input_hash", "vector_hash", "error"),
    _index("chunk_document", "document", "ordinal"),
    _index("chunk_vector", "vector_hash"),
)

# `description_order` ranks an entity's distinct descriptions by content alone: definitions first, then by digest.
# It is -1 where there is no description.
entity_mention = _clustered(
    "entity_mention",
    *_integers("chunk", "ordinal", "entity"),
    *_texts("surface", "type", "description"),
    sa.Column("description_order", sa.BigInteger, nullable=False),
    *_integers("is_definition", "start_char", "end_char"),
    _key("chunk", "ordinal"),
    _index("entity_mention_entity", "entity", "description_order"),
)

relation_mention = _clustered(
    "relation_mention",
    *_integers("chunk", "ordinal", "relation", "is_reversed"),
    *_texts("keywords", "description"),  # keywords: JSON array
    sa.Column("description_order", sa.BigInteger, nullable=False),
    *_integers("weight"),  # thousandths, so that sums are exact in any order
    _key("chunk", "ordinal"),
    _index("relation_mention_relation", "relation", "description_order"),
)

alias_mention = _clustered(
    "alias_mention",
    *_integers("chunk", "ordinal", "entity"),
    *_texts("alias", "surface"),
    _key("chunk", "ordinal"),
    _index("alias_mention_entity", "entity"),
    _index("alias_mention_alias", "alias"),
)

# `object` is the other entity that a claim names, if any.
claim_mention = _clustered(
    "claim_mention",
    *_integers("chunk", "ordinal", "entity"),
    sa.Column("object", INTEGER),
    *_texts("type", "status", "dates", "description"),
    _key("chunk", "ordinal"),
    _index("claim_mention_entity", "entity"),
)

# What a document keeps whole, by hash: its text (kind "t") and the file it was read from (kind "o").
document_content = _clustered(
    "document_content", *_integers("document"), *_texts("kind", "hash"), _key("document", "kind")
)
sa.Index("document_content_hash", document_content.c.hash)

# The bytes with a hash, in compressed parts of equal length; the last one may be shorter.
content_part = _table("content_part", *_texts("hash"), *_integers("ordinal"), _bytes("data"), _key("hash", "ordinal"))

# A person's corrections, see model.edit. `payload` is a JSON object; `undone_at` is "" while the edit holds.
_undone_at = sa.Column("undone_at", TEXT, nullable=False, server_default="")
edit = _table("edit", _rid(), *_texts("kind", "payload", "made_at"), _undone_at)

# Replies of extractors and models. `lifetime` says what ends a reply, see model.chat.ReplyLifetime.
reply = _table(
    "reply",
    sa.Column("input_hash", TEXT, primary_key=True),
    _bytes("payload"),  # deflated UTF-8
    sa.Column("lifetime", TEXT, nullable=False, server_default=ReplyLifetime.DOCUMENTS.value),
    _index("reply_revision", "lifetime", sqlite_where=sa.text(f"lifetime = '{ReplyLifetime.REVISION.value}'")),
)

# Which documents need a reply. `version` is 0 for an extraction, which a document needs while one of its chunks has
# that input. For a single call, it is the version of the document for which the call was made.
reply_document = _clustered(
    "reply_document",
    *_texts("document", "input_hash"),
    sa.Column("version", INTEGER, nullable=False, server_default="0"),
    _key("document", "input_hash"),
    _index("reply_document_input", "input_hash"),
)

# Replies made from other replies. A reply is deleted with the first of its sources.
reply_source = _pairs("reply_source", *_texts("input_hash", "source"))

# ---- folds of mentions, updated in the transaction that changes the facts --------------------------------------------

# `described_by`, where the description of an entity or relation comes from. JOINED: all its descriptions. WAITING: as
# many descriptions as fit, until there is a summary. SUMMARISED: a summary of all its descriptions.
JOINED, WAITING, SUMMARISED = 0, 1, 2

entity = _table(
    "entity",
    _rid(),
    _unique("key"),
    *_texts("name", "type", "description"),
    *_integers("n_mentions", "n_chunks", "degree"),
    *_texts("vector_hash"),
    sa.Column("described_by", INTEGER, nullable=False, server_default="0"),
    _index("entity_vector", "vector_hash"),
    _index("entity_unsummarised", "described_by", sqlite_where=sa.text(f"described_by = {WAITING}")),
)

entity_surface = _value_counts("entity_surface", "entity", "surface")
entity_type = _value_counts("entity_type", "entity", "type")

relation = _table(
    "relation",
    _rid(),
    *_integers("source", "target"),
    *_texts("keywords", "description"),  # keywords: JSON array
    *_integers("weight", "n_mentions", "n_chunks"),  # weight: thousandths
    *_texts("vector_hash"),
    sa.Column("described_by", INTEGER, nullable=False, server_default="0"),
    sa.UniqueConstraint("source", "target"),
    _index("relation_target", "target"),
    _index("relation_vector", "vector_hash"),
    _index("relation_unsummarised", "described_by", sqlite_where=sa.text(f"described_by = {WAITING}")),
)

relation_keyword = _value_counts("relation_keyword", "relation", "keyword")

# A summary replaces the joined descriptions whose hash is `inputs_hash`. It is deleted when they change.
summary = _table(
    "summary",
    *_texts("kind"),  # entity | relation
    *_integers("owner"),
    *_texts("inputs_hash", "text", "model"),
    _key("kind", "owner"),
)

# ---- links: every known name (an entity's key or a stated alias) in every chunk where it occurs ----------------------

# `words`: the words of the key, separated by spaces. `n`: number of entities and alias mentions with this key.
name = _table(
    "name",
    _rid(),
    _unique("key"),
    sa.Column("words", TEXT, nullable=False, server_default=""),
    *_integers("n"),
    _index("name_words", "words"),
)

# Names by their spelling key (`text.spellings`), for those that have one.
spelling = _clustered("spelling", *_texts("spelling"), *_integers("name"), _key("spelling", "name"))

link = _clustered("link", *_integers("name", "chunk", "n"), _key("name", "chunk"), _index("link_chunk", "chunk"))

# `state`: "live" for the model whose vectors are searched, "building" during a re-embedding.
model = _table("model", _rid(), _unique("identity"), *_integers("dimension"), *_texts("state"))

vector = _table(
    "vector",
    _rid(),  # rises, never reused: see meta "vector_row"
    *_integers("model"),
    sa.Column("space", SpaceCode, nullable=False),
    *_texts("text_hash"),
    _bytes("data"),  # float16, little-endian
    sa.UniqueConstraint("text_hash", "model"),
    _index("vector_space", "model", "space"),
)

# Deleted vectors, so that vector indexes outside the database can follow.
vector_gone = _table(
    "vector_gone",
    _rid(),
    *_integers("model"),
    sa.Column("space", SpaceCode, nullable=False),
    *_integers("revision"),
    _index("vector_gone_revision", "model", "space", "revision"),
)

# Texts that have no vector yet.
vector_todo = _clustered(
    "vector_todo",
    *_integers("model"),
    *_texts("text_hash"),
    sa.Column("space", SpaceCode, nullable=False),
    _key("model", "text_hash"),
)

job = _table(
    "job",
    _rid(),
    _unique("document"),
    *_texts("status", "title", "source", "media_type", "metadata"),
    sa.Column("chunking", TEXT, nullable=False, server_default=""),  # JSON object, or ""
    sa.Column("data", sa.LargeBinary),
    *_texts("error", "owner"),  # owner: "" while nobody works on the job
    sa.Column("lease_until", sa.Float, nullable=False),
    *_texts("added_at"),
    _index("job_status", "status", "rid"),
)

# Calls of models and their cost, see model.usage.UsageRow; money in millionths.
usage = _clustered(
    "usage",
    *_texts("day", "stage", "model", "subject"),
    *_integers("n_calls"),
    *(sa.Column(f"{kind}_tokens", sa.BigInteger, nullable=False) for kind in ("input", "cached", "output")),
    sa.Column("cost", sa.BigInteger, nullable=False),
    *_integers("n_unpriced", "n_interrupted"),
    *(sa.Column(f"interrupted_{kind}_tokens", sa.BigInteger, nullable=False) for kind in ("input", "cached", "output")),
    sa.Column("interrupted_cost", sa.BigInteger, nullable=False),
    _key("day", "stage", "model", "subject"),
)

# The tables from here on hold derivations, made on demand, not by every commit.

# The change log: what each commit changed. Arrays outside the database follow it; it is not part of the dump.
# `kind`: "c" a chunk that was added, removed or changed; "e" an entity whose names (and so links) or synonyms changed;
# "m" an entity in a cluster whose mentions changed; "s" a history nonce.
change = _clustered(
    "change", *_integers("revision"), *_texts("kind"), *_integers("row"), _key("revision", "kind", "row")
)

# The derivations of this index. `identity`: algorithm, version and parameters. `revision`: of the facts that it is of.
derivation = _table(
    "derivation", sa.Column("name", TEXT, primary_key=True), *_texts("identity"), *_integers("revision")
)

cluster = _table(
    "cluster",
    _rid(),
    _unique("id"),
    *_texts("hierarchy"),
    *_integers("level"),
    sa.Column("parent", INTEGER),
    *_integers("n_entities"),
    *_texts("inputs_hash"),
    _index("cluster_hierarchy", "hierarchy", "level"),
    _index("cluster_parent", "parent"),
)

# The finest cluster of each entity, one in each hierarchy.
membership = _pairs("membership", *_integers("entity", "cluster"))

# The report of a cluster: deleted as soon as one of its sources is removed.
report = _table(
    "report",
    _rid(),  # of the cluster
    *_texts("title", "summary", "findings"),  # findings: JSON array of [summary, explanation]
    sa.Column("rating", sa.Float, nullable=False),
    *_texts("chunks"),  # JSON array of chunk ids
    *_texts("inputs_hash", "model", "vector_hash"),
    _index("report_vector", "vector_hash"),
)

cluster_relation = _table(
    "cluster_relation",
    _rid(),
    *_integers("source", "target", "level"),
    *_texts("description"),
    *_integers("weight", "n"),  # weight: thousandths
    *_texts("inputs_hash", "model"),
    sa.UniqueConstraint("source", "target"),
    _index("cluster_relation_target", "target"),
    _index("cluster_relation_model", "model"),
)

# Pairs of entities with similar names; `first` is the smaller row number, `similarity` in millionths.
synonym = _pairs("synonym", *_integers("first", "second", "similarity"))

# The text hash of each entity's name vector, while name vectors are wanted. `is_compared` is 1 once the name has been
# compared with all others; `revision` is the one that last set it to 0.
entity_name = _table(
    "entity_name",
    _rid(),  # of the entity
    *_texts("vector_hash"),
    *_integers("revision", "is_compared"),
    _index("entity_name_vector", "vector_hash"),
    _index("entity_name_new", "is_compared", sqlite_where=sa.text("is_compared = 0")),
)


def _spans(name: str) -> sa.Table:
    columns = _integers("chunk", "ordinal", "start_char", "end_char")  # within the chunk's text
    unique = sa.UniqueConstraint("chunk", "ordinal")
    return _table(name, _rid(), *columns, *_texts("vector_hash"), unique, _index(f"{name}_vector", "vector_hash"))


sentence, question = _spans("sentence"), _spans("question")

# The tables whose rows carry a checksum, and the columns that it covers.
FACTS = (document, chunk, entity_mention, relation_mention, alias_mention, claim_mention, edit)
CHECKED = {**{table: tuple(table.c.keys()) for table in (*FACTS, summary, report, sentence)}, vector: ("rid", "data")}
for _checked in CHECKED:
    _checked.append_column(sa.Column("checksum", INTEGER, nullable=False, server_default="0"))
