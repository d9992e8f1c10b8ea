"""Damage: what to say of a document that is not whole."""

from quipu.errors import InvalidDocument


def damaged(name: str, what: str) -> InvalidDocument:
    """Return the error for the document `name`, of which `what` is not as it should be."""
    return InvalidDocument(
        f"{name} is damaged: {what.rstrip('.')}.", remedy="Copy or download it again, or save it anew."
    )
