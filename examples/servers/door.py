"""A door before a server on this machine: it can be shut, cut and slowed, and speak TLS.

Tests and demos put it between a client and a database, to do what networks do.
"""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

#: What a client of PostgreSQL sends before TLS: a length of 8, and the number of the wish.
_POSTGRES_ASKS_TLS: Final = bytes.fromhex("00000008 04d2162f")
_PIECE: Final = 1 << 16


class Door:
    """Passes on what comes to its `port`, each connection in a thread of its own."""

    host: Final = "127.0.0.1"

    def __init__(self, port: int, *, certificate: Path | None = None) -> None:
        """Open it before a server's port; with a certificate (and key, PEM) clients must use TLS.

        TLS begins as clients of PostgreSQL begin it.
        """
        self._behind, self._context = port, _context(certificate)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.is_shut = False
        #: Seconds that each piece of up to 64 kB waits, either way.
        self.delay = 0.0
        self._listening = socket.create_server((self.host, 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections at once."""
        with self._lock:
            ended, self._open = self._open, set()
        for one in ended:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def shut(self) -> None:
        """Cut, and end each new connection until `is_shut` is false again."""
        self.is_shut = True
        self.cut()

    def close(self) -> None:
        """Take the door away: its port refuses connections."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self.is_shut:
                client.close()
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._context is not None:
                client = _as_tls(client, self._context)
            server = socket.create_connection((self.host, self._behind))
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        with suppress(OSError, ValueError):
            self._pass(client, server)
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on both ways until one ends. One thread: a TLS connection bears no second one."""
        both = {client: server, server: client}
        while True:
            waiting = isinstance(client, ssl.SSLSocket) and client.pending() > 0
            for source in [client] if waiting else select.select(list(both), [], [])[0]:
                piece = source.recv(_PIECE)
                if not piece:
                    return
                if self.delay:
                    time.sleep(self.delay)
                both[source].sendall(piece)


@contextmanager
def door(port: int, *, certificate: Path | None = None) -> Iterator[Door]:
    """A door that is open; it is gone after the block."""
    made = Door(port, certificate=certificate)
    try:
        yield made
    finally:
        made.close()


def certificate(folder: Path, *, host: str = "IP:127.0.0.1") -> Path:
    """A file with a key and its certificate, which is its own authority; for a name or address.

    Raises FileNotFoundError without `openssl`.
    """
    if shutil.which("openssl") is None:
        raise FileNotFoundError("there is no openssl to make a certificate")
    key, made = folder / "door.key", folder / "door.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", str(key), "-out", str(made), "-days", "30",
            "-subj", "/CN=polynya-server", "-addext", f"subjectAltName={host}",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    made.write_text(key.read_text() + made.read_text())
    return made


def _context(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def _as_tls(client: socket.socket, context: ssl.SSLContext) -> socket.socket:
    """The connection after TLS has begun. Raises OSError when the client does not want it."""
    asked = client.recv(len(_POSTGRES_ASKS_TLS), socket.MSG_WAITALL)
    if asked != _POSTGRES_ASKS_TLS:
        raise OSError("the client asks for no TLS")
    client.sendall(b"S")
    return context.wrap_socket(client, server_side=True)
