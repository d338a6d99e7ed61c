"""Certificates in a file of authorities, as Java takes them: without all else that PEM may have."""

from __future__ import annotations

import re
from typing import Final

_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


def certificates_of(pem: str) -> list[str]:
    """The certificates of a text in PEM, each as PEM; keys and comments are left out."""
    return [str(one) for one in _PEM.findall(pem)]
