"""Approximate vector search by the settings: candidates of Qdrant in front of the local index."""

from urllib.parse import urlsplit

from quipu.errors import InvalidInput
from quipu.ports.vector_index import CandidateIndex, VectorIndex
from quipu.settings import Settings
from quipu.settings.sources import find_key, find_secrets
from quipu.vectors.approximate import ApproximateVectors
from quipu.vectors.qdrant import open_qdrant

QDRANT_KEY = "QUIPU_QDRANT_KEY"


def open_approximate(settings: Settings, identity: str, exact: VectorIndex) -> ApproximateVectors:
    """Return the approximate index that the settings name; nothing is asked yet. `identity` is that of the index.

    Raises InvalidInput for settings that do not fit together, and Unavailable for a library that is not installed.
    """
    if not identity:
        raise InvalidInput(
            f"vector_search = {settings.vector_search!r} needs an index with an identity, and this one is older.",
            remedy="Copy it, which gives it one: quipu copy FROM TO.",
        )
    return ApproximateVectors(exact, _qdrant(settings, identity), settings.exact_below)


def _qdrant(settings: Settings, identity: str) -> CandidateIndex:
    url = settings.qdrant_url
    if not url:
        raise InvalidInput(
            "vector_search = 'qdrant' needs the address of its server.",
            remedy='Set qdrant_url, as in "http://localhost:6333".',
        )
    key = find_key((QDRANT_KEY,), [urlsplit(url).netloc], find_secrets(settings.secrets, settings.outer_folder))
    return open_qdrant(url, key.value if key else "", identity)
