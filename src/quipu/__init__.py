"""Quipu: a graph-RAG engine whose index is a pure function of its documents."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.errors import (
    Busy,
    Corrupt,
    InvalidDocument,
    InvalidInput,
    Mismatch,
    NotFound,
    OverBudget,
    Overloaded,
    QuipuError,
    Refused,
    Stale,
    TooLong,
    Unavailable,
)

if TYPE_CHECKING:
    from quipu import sync
    from quipu.engine import Quipu
    from quipu.model.answer import Answer, AnswerPiece, Citation, Comparison, Statement
    from quipu.model.chunking import Chunking
    from quipu.model.conversation import (
        ConversationAnswer,
        ConversationDetails,
        ConversationPage,
        SavedConversation,
        SavedExchange,
    )
    from quipu.model.derivation import DerivationResult, DerivationState, RefreshCost
    from quipu.model.document import Document, DocumentStatus, SourceDocument
    from quipu.model.edit import (
        DuplicateCandidate,
        DuplicateDecision,
        DuplicatePair,
        EditKind,
        EditPage,
        EditRequest,
        RecordedEdit,
        UndoResult,
    )
    from quipu.model.event import DocumentDone, Event, Progress, Spending
    from quipu.model.evidence import Evidence, Explanation, Trace
    from quipu.model.query import Budget, Condition, Filter, Query, Turn
    from quipu.model.results import (
        AddResult,
        EnqueuedDocuments,
        ImportResult,
        IndexStatus,
        RefreshResult,
        RemovalPreview,
        RemoveResult,
        RetrievedPassage,
    )
    from quipu.model.tuning import TuningResult
    from quipu.model.usage import Estimate, UsageRow
    from quipu.ports.history import ArchiveSummary
    from quipu.retrieve.mix import MixWeights
    from quipu.settings import Settings, SettingValue

__version__ = "0.1.0"

__all__ = [
    "AddResult",
    "Answer",
    "AnswerPiece",
    "ArchiveSummary",
    "Budget",
    "Busy",
    "Chunking",
    "Citation",
    "Comparison",
    "Condition",
    "ConversationAnswer",
    "ConversationDetails",
    "ConversationPage",
    "Corrupt",
    "DerivationResult",
    "DerivationState",
    "Document",
    "DocumentDone",
    "DocumentStatus",
    "DuplicateCandidate",
    "DuplicateDecision",
    "DuplicatePair",
    "EditKind",
    "EditPage",
    "EditRequest",
    "EnqueuedDocuments",
    "Estimate",
    "Event",
    "Evidence",
    "Explanation",
    "Filter",
    "ImportResult",
    "IndexStatus",
    "InvalidDocument",
    "InvalidInput",
    "Mismatch",
    "MixWeights",
    "NotFound",
    "OverBudget",
    "Overloaded",
    "Progress",
    "Query",
    "Quipu",
    "QuipuError",
    "RecordedEdit",
    "RefreshCost",
    "RefreshResult",
    "Refused",
    "RemovalPreview",
    "RemoveResult",
    "RetrievedPassage",
    "SavedConversation",
    "SavedExchange",
    "Settings",
    "SourceDocument",
    "Spending",
    "Stale",
    "Statement",
    "TooLong",
    "Trace",
    "TuningResult",
    "Turn",
    "Unavailable",
    "UndoResult",
    "UsageRow",
    "__version__",
    "open",
    "restore",
    "sync",
]

_LAZY = {
    "quipu.engine": ("Quipu",),
    "quipu.model.answer": ("Answer", "AnswerPiece", "Citation", "Comparison", "Statement"),
    "quipu.ports.history": ("ArchiveSummary",),
    "quipu.model.chunking": ("Chunking",),
    "quipu.model.conversation": (
        "ConversationAnswer",
        "ConversationDetails",
        "ConversationPage",
        "SavedConversation",
        "SavedExchange",
    ),
    "quipu.model.derivation": ("DerivationResult", "DerivationState", "RefreshCost"),
    "quipu.model.document": ("Document", "SourceDocument", "DocumentStatus"),
    "quipu.model.edit": (
        "DuplicateCandidate",
        "DuplicateDecision",
        "DuplicatePair",
        "EditKind",
        "EditPage",
        "EditRequest",
        "RecordedEdit",
        "UndoResult",
    ),
    "quipu.model.event": ("DocumentDone", "Event", "Progress", "Spending"),
    "quipu.model.evidence": ("Evidence", "Explanation", "Trace"),
    "quipu.model.query": ("Budget", "Condition", "Filter", "Query", "Turn"),
    "quipu.model.results": (
        "AddResult",
        "EnqueuedDocuments",
        "ImportResult",
        "RefreshResult",
        "RemovalPreview",
        "RemoveResult",
        "RetrievedPassage",
        "IndexStatus",
    ),
    "quipu.model.tuning": ("TuningResult",),
    "quipu.model.usage": ("Estimate", "UsageRow"),
    "quipu.retrieve.mix": ("MixWeights",),
    "quipu.settings": ("Settings",),
}
_MODULE_BY_NAME = {name: module for module, names in _LAZY.items() for name in names}


logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until the program sets logging up


def __getattr__(name: str) -> object:
    """Import slow modules on first use, so that `import quipu` stays fast."""
    if name == "sync":
        return import_module("quipu.sync")
    if name in _MODULE_BY_NAME:
        return getattr(import_module(_MODULE_BY_NAME[name]), name)
    raise AttributeError(f"module 'quipu' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is public, for completion in an editor or a notebook."""
    return sorted(__all__)


@asynccontextmanager
async def open(  # noqa: A001 -- `quipu.open` is the name users look for
    index: "str | Path | None" = None, **settings: "SettingValue"
) -> AsyncIterator["Quipu"]:
    """Open the index in the directory `index`, which is created if it does not exist; close it after the block.

    `settings` are fields of Settings. Fields that are not given come from the environment, quipu.toml or the defaults.
    Raises InvalidInput for an invalid setting, and Mismatch if the index was built with another embedder or schema.
    """
    from quipu.settings import Settings
    from quipu.wiring import open_engine

    engine = await open_engine(Settings(index=index, **settings))
    try:
        yield engine
    finally:
        await engine.close()


async def restore(
    file: "str | Path", index: "str | Path | None" = None, *, replace: bool = False, **settings: "SettingValue"
) -> "ArchiveSummary":
    """Restore an archive, made by `Quipu.backup`, into the index in the directory `index`; return what it holds.

    There must be no index yet, unless `replace` is set; a process that has the earlier one open must open it again.
    Raises Corrupt for an archive that was truncated or altered; then nothing has changed.
    """
    from quipu.settings import Settings
    from quipu.wiring.restoring import restore_index

    return await restore_index(Path(file), Settings(index=index, **settings), replace=replace)
