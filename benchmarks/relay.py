"""A socket between a client and a PostgreSQL server that counts round trips and can make each take longer."""

import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"  # as libpq names the socket of the default port in a folder
_PIECE = 1 << 16  # bytes


class Relay:
    """Passes everything on; a round trip begins when the client speaks after the server, or first.

    The server holds its replies back until it is asked for them or 8 kB are full, so statements that the client does
    not wait for are part of the next round trip.
    """

    def __init__(self, server: Path, folder: Path, delay_s: float) -> None:
        self.n_round_trips = 0
        self.folder = folder
        self._server = server / _SOCKET
        self._delay_s = delay_s
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / _SOCKET))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections; those that exist end with their client."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, selectors.DefaultSelector() as selector:
            server.connect(str(self._server))
            selector.register(client, selectors.EVENT_READ, (client, server))
            selector.register(server, selectors.EVENT_READ, (server, client))
            has_server_spoken = True
            with suppress(OSError):  # one of both has gone
                while True:
                    for key, _ in selector.select():
                        source, target = key.data
                        if not (piece := source.recv(_PIECE)):
                            return
                        if source is client and has_server_spoken:
                            self.n_round_trips += 1
                            time.sleep(self._delay_s)
                        has_server_spoken = source is server
                        target.sendall(piece)


@contextmanager
def relayed(server: Path, *, delay_s: float = 0.0) -> Iterator[Relay]:
    """Relay to the server whose socket is in the folder `server`; each round trip takes `delay_s` longer."""
    with tempfile.TemporaryDirectory(prefix="relay-") as folder:
        relay = Relay(server, Path(folder), delay_s)
        try:
            yield relay
        finally:
            relay.close()
