"""The promises of `ports/store.py`, a class of tests for each kind; run by `quipu.testing.store_contract`."""

from quipu.errors import Unavailable

try:
    import pytest
except ImportError as error:
    raise Unavailable("The store contract runs under pytest.", remedy="pip install pytest pytest-asyncio") from error

# So that a failing assert shows its values, as in a test module of one's own; it must come before their import.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "archives",
            "calls",
            "commits",
            "contents",
            "conversations",
            "documents",
            "edits",
            "entities",
            "filters",
            "full_text",
            "history",
            "jobs",
            "laws",
            "likenesses",
            "linking",
            "mentions",
            "numbers",
            "relations",
            "replies",
            "summaries",
            "turns",
            "usage",
            "values",
            "vectors",
        )
    )
)

run_as_coroutines = pytest.mark.asyncio
