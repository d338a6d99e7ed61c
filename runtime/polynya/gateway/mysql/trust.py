"""A store of trusted certificates for Java, from a PEM file: the format JKS, version 2. Pure.

Java has no setting for a PEM file, and the tool that would make the store is not on all machines.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from typing import Final

from polynya.gateway.certificates import certificates_of

_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_TRUSTED: Final = 2
_SALT: Final = b"Mighty Aphrodite"


def java_trust_store(pem: str, password: str) -> bytes:
    """The store; the password only guards it against damage. Raises ValueError for a bad PEM."""
    certificates = [ssl.PEM_cert_to_DER_cert(one) for one in certificates_of(pem)]
    if not certificates:
        raise ValueError("there is no certificate in it")
    store = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, one in enumerate(certificates):
        store += struct.pack(">I", _TRUSTED) + _text(f"authority-{number}") + struct.pack(">Q", 0)
        store += _text("X.509") + struct.pack(">I", len(one)) + one
    return store + hashlib.sha1(password.encode("utf-16-be") + _SALT + store).digest()  # noqa: S324


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()
