"""A content hash: what a document holds and how it is cut, who read it, and that reader in words.

The first part tells whether a document has changed, both together whether reading it again could find anything else.
Hashes of indexes made before name no reader: they are one digest of all of it.
"""

from quipu.model.ids import digest

_N_READER = 12  # of its digest
_READ_AT = len(digest()) + 1
NAMED_AT = _READ_AT + _N_READER + 1  # where the reader's name begins


def join_hash(content: str, reader: str, name: str) -> str:
    """Return the hash of a document with this digest of content, read by what has this identity and name."""
    return f"{content} {digest(reader)[:_N_READER]} {name}"


def is_same_content(one: str, other: str) -> bool:
    """Say whether two hashes are of one content, cut in one way, whoever read it."""
    return one[:_READ_AT] == other[:_READ_AT]


def is_same_reading(one: str, other: str) -> bool:
    """Say whether two hashes are of one content read by the same, by whatever name."""
    return one[:NAMED_AT] == other[:NAMED_AT]


def reader_named(content_hash: str) -> str:
    """Return who read a document, in words; "" where that was not noted."""
    return content_hash[NAMED_AT:]
