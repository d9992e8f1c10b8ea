"""The errors callers can act on: one root, one class for each thing a caller can do about it."""


class QuipuError(Exception):
    """Root of every error Quipu raises on purpose.

    `message` says what is wrong and names the value; `remedy` says what to do about it.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class InvalidInput(QuipuError):
    """A value given by the caller cannot be used: change the value."""


class InvalidDocument(InvalidInput):
    """One document cannot be read (empty, binary, wrong encoding): mend or leave out the document."""


class NotFound(QuipuError):
    """The named document, chunk, entity, relation, strategy or index does not exist."""


class Mismatch(QuipuError):
    """The index was built with another model, tokenizer or schema: rebuild or open with the old one."""


class Stale(QuipuError):
    """A derivation a query needs is missing: run the command the remedy names. `missing` are their names."""

    def __init__(self, message: str, *, remedy: str = "", missing: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.missing = missing


class Busy(QuipuError):
    """Another process holds the index for writing: wait, or stop that process."""


class Unavailable(QuipuError):
    """An optional library or a service is not there: install or start it."""


class Corrupt(QuipuError):
    """The index on disk is damaged or not a Quipu index."""


class InvalidDelta(QuipuError):
    """A change breaks an invariant of the data model; a bug in the code that built it."""


class Overloaded(QuipuError):
    """A service could not answer just now (too many requests, a fault of its own, no reply in time): try again later.

    `retry_after_s` is how long it asks to be left alone, None where it does not say. `may_cost` is set where the
    request may have been worked on before (time ran out, the connection broke): it may have to be paid for.
    """

    def __init__(
        self, message: str, *, remedy: str = "", retry_after_s: float | None = None, may_cost: bool = False
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s
        self.may_cost = may_cost


class TooLong(QuipuError):
    """A request does not fit the model's context window: send less, or use a model with a larger one."""


class Refused(QuipuError):
    """A service will never answer this one request (a filter, a parameter it rejects); others it may.

    `may_cost` is set where it came to this only after work that has to be paid for, as with a reply that was withheld.
    """

    def __init__(self, message: str, *, remedy: str = "", may_cost: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.may_cost = may_cost


class OverBudget(QuipuError):
    """The next call would go over the budget: everything paid for is kept; raise the budget and go on."""
