"""Explain: the error that an answer amounts to, with what else the server and its past tell."""

from quipu.errors import Overloaded, QuipuError
from quipu.providers.openai.faults import Kind, kind_of, to_error
from quipu.providers.openai.listing import list_models
from quipu.providers.openai.said import Said
from quipu.providers.openai.session import Session


async def explained(said: Said, session: Session) -> QuipuError:
    """Return the error for an answer that is none.

    An unknown model is given the names the server lists that come near. Where the address has answered as it should
    before, a page from somewhere on the way says nothing against it: it is overloaded.
    """
    kind = kind_of(said)
    models = [each.name for each in await list_models(session)] if kind is Kind.MODEL else []
    error = to_error(said, session.target, models=models)
    if kind is Kind.ADDRESS and session.has_answered:
        return Overloaded(error.message, remedy="Try again.")
    return error
