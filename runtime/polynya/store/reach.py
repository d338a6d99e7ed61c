"""Whether a server can be reached: one TCP connection, with TLS where its address says so."""

from __future__ import annotations

import socket
import ssl
from typing import Final
from urllib.parse import urlsplit

#: As long as the clients of AWS wait for a connection.
_SECONDS: Final = 5.0
_PORTS: Final = {"http": 80, "https": 443}


def reach(address: str) -> None:
    """Connect to a server and hang up; nothing is sent to it but the greeting of TLS.

    Args:
        address: `HOST:PORT`, or an `http` or `https` address.

    Raises:
        OSError: it cannot be reached, or its certificate is not one that this machine trusts.
        ValueError: the address names no host and port.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    port = parts.port or _PORTS.get(parts.scheme)
    if not parts.hostname or port is None:
        raise ValueError("the address has no host or no port")
    with socket.create_connection((parts.hostname, port), timeout=_SECONDS) as connected:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            context.wrap_socket(connected, server_hostname=parts.hostname).close()
