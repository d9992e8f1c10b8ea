"""The errors that Quipu raises: one root class, and one class for each reaction of the caller."""


class QuipuError(Exception):
    """Root of all errors that Quipu raises on purpose.

    `message` says what is wrong and contains the value; `remedy` says how to fix it.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class InvalidInput(QuipuError):
    """The caller passed an invalid value. Reaction: change the value."""


class InvalidDocument(InvalidInput):
    """A document cannot be read: it is empty, binary or damaged. Reaction: repair or exclude the document."""


class NotFound(QuipuError):
    """The named document, chunk, entity, relation or index does not exist."""


class Mismatch(QuipuError):
    """The index was built with another model, tokenizer or schema. Reaction: rebuild it, or use the former one."""


class Stale(QuipuError):
    """A derivation that a query needs is missing. Reaction: run the command that the remedy names.

    `missing` are the names of the missing derivations.
    """

    def __init__(self, message: str, *, remedy: str = "", missing: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.missing = missing


class Busy(QuipuError):
    """Another process keeps the index locked for writing. Reaction: wait, or stop that process."""


class Unavailable(QuipuError):
    """An optional library or a service is missing. Reaction: install or start it."""


class Corrupt(QuipuError):
    """The index on disk is damaged, or the directory does not contain a Quipu index."""


class InvalidDelta(QuipuError):
    """A Delta violates the data model. This is a bug in the code that built it."""


class Overloaded(QuipuError):
    """A service failed temporarily (rate limit, server error, timeout). Reaction: try again later.

    `retry_after_s` is the waiting time that the service asked for, None if it did not. `may_cost` is set if the
    service may have processed the request before the failure (timeout, broken connection) and may charge for it.
    """

    def __init__(
        self, message: str, *, remedy: str = "", retry_after_s: float | None = None, may_cost: bool = False
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s
        self.may_cost = may_cost


class TooLong(QuipuError):
    """A request does not fit the model's context window. Reaction: send less, or use a model with a larger one."""


class Refused(QuipuError):
    """A service permanently rejects this request (content filter, rejected parameter). Other requests may succeed.

    `may_cost` is set if the service rejected it after charged work, for example when it withheld a finished reply.
    """

    def __init__(self, message: str, *, remedy: str = "", may_cost: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.may_cost = may_cost


class OverBudget(QuipuError):
    """The next call would exceed the budget. Everything paid for is kept. Reaction: raise the budget and continue."""
