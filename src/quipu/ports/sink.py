"""Sink: takes the events of long work."""

from collections.abc import Callable

from quipu.model.event import Event

Sink = Callable[[Event], None]


def no_sink(event: Event) -> None:
    """Take an event and do nothing."""
