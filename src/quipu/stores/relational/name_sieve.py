"""A sieve in memory for the anchors of known names: of a thousand pairs of words, few need to be looked up.

One bit a hash (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970, with one hash function).
What it lets through is looked up in the database all the same, so it may hold too much, never too little.
"""

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, func, select

from quipu.stores.relational import schema as s
from quipu.text.names import NameStarts

_ROOM = 16  # places a name, so that about one in sixteen unknown anchors comes through
_ANCHORS = select(s.name.c.anchor)
_N_NAMES = select(func.max(s.name.c.rid))


class NameSieve:
    """Which anchors may belong to a name, as of one revision of the index.

    It is filled once looking everything up has cost as much as filling it, and emptied where another process wrote.
    """

    def __init__(self) -> None:
        self._revision = -1
        self._places: npt.NDArray[np.bool_] | None = None
        self._n_names = 0
        self._n_looked_up = 0

    def begin(self, revision: int) -> None:
        """Begin a change of the index as it is at `revision`; what another process has changed is not known here."""
        if self._revision != revision:
            self._places = None
        self._revision = -1

    def finish(self, revision: int) -> None:
        """Note that the change was committed, and made the index what it is at `revision`."""
        self._revision = revision

    def add(self, anchors: Collection[str]) -> None:
        """Let new names through."""
        self._n_names += len(anchors)
        if self._places is not None:
            if self._n_names * _ROOM > 2 * len(self._places):
                self._places = None  # too full: filled anew when next used
            else:
                self._places[_hashes(anchors, len(self._places))] = True

    def sift(self, connection: Connection, places: NameStarts) -> NameStarts:
        """Return those of `places` where a known name may begin."""
        if self._places is None:
            self._n_looked_up += len(places.anchors)
            if self._n_looked_up > (connection.scalar(_N_NAMES) or 0):
                self._fill(connection)
        if self._places is None:
            return places
        kept = self._places[_hashes(places.anchors, len(self._places))].nonzero()[0].tolist()
        return NameStarts([places.positions[place] for place in kept], [places.anchors[place] for place in kept])

    def _fill(self, connection: Connection) -> None:
        known = connection.execute(_ANCHORS).scalars().all()
        self._n_names = len(known)
        self._places = np.zeros(max(1 << 16, 1 << (len(known) * _ROOM).bit_length()), dtype=np.bool_)
        self._places[_hashes(known, len(self._places))] = True


def _hashes(anchors: Iterable[str], n_places: int) -> npt.NDArray[np.int64]:
    return np.fromiter(map(hash, anchors), dtype=np.int64) & (n_places - 1)
