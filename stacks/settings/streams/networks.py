"""Networks in which brokers may be."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final

from polynya.model.names import shown
from stacks.settings.fields import refuse

_WIDEST: Final = 8


def reachable_network(text: str) -> str:
    """Return an IPv4 network to which nodes may connect; a whole internet is none."""
    try:
        network = IPv4Network(text)
    except ValueError as error:
        message = f"{shown(text)} is not an IPv4 network such as 10.40.0.0/16: {error}"
        raise refuse(message) from None
    if network.prefixlen < _WIDEST:
        raise refuse(f"{shown(text)} is too wide; name the networks of the brokers")
    return text
