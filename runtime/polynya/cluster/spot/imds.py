"""The instance metadata service of EC2, version 2: a token, then plain GET requests.

The service is on a link-local address, so no proxy is asked and no redirect is followed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from polynya.model.errors import ConfigError, DependencyError

#: Where the service is on every EC2 instance.
ADDRESS: Final = "http://169.254.169.254"

_TOKEN_SECONDS: Final = 21_600
_TIMEOUT_SECONDS: Final = 2.0
_MOST_BYTES: Final = 65_536
#: Files of the firmware that name the maker of the machine.
_MAKERS: Final = ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/board_vendor")


def imds_at(choice: str, *, root: Path = Path("/")) -> Imds | None:
    """The service that a choice of the command line means, None when there is none to ask.

    Args:
        choice: `auto` asks it on an EC2 instance only, `off` never; a URL on a loopback address is
            one that stands in for it.
        root: of the file system that tells whether this is an EC2 instance.

    Raises:
        ConfigError: it is something else (POLYNYA-AGT-020).
    """
    if choice == "off":
        return None
    if choice == "auto":
        return Imds(ADDRESS) if _is_ec2(root) else None
    address = urlsplit(choice)
    if address.scheme != "http" or not _is_loopback(address.hostname):
        raise ConfigError(
            "POLYNYA-AGT-020",
            f"`--imds {choice}` is no place to ask for Spot notices",
            state="nothing was started",
            fix="`auto`, `off`, or the URL of a stand-in on this machine, such as "
            "http://127.0.0.1:1338",
        )
    return Imds(choice.rstrip("/"))


class Imds:
    """Asks the service; renews its token when need be."""

    def __init__(self, address: str, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._address, self._timeout_seconds = address, timeout_seconds
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())
        self._token: str | None = None

    def get(self, path: str) -> str | None:
        """The text at a path of the metadata, None when there is nothing.

        Raises:
            DependencyError: the service does not answer (POLYNYA-AGT-021).
        """
        try:
            return self._asked_again(path)
        except (OSError, HTTPException) as error:
            raise self._unheard(error) from error

    def _asked_again(self, path: str) -> str | None:
        try:
            return self._asked(path)
        except HTTPError as error:
            if error.code != 401:
                raise
        # The token expired.
        self._token = None
        return self._asked(path)

    def _asked(self, path: str) -> str | None:
        headers = {"X-aws-ec2-metadata-token": self._fresh_token()}
        try:
            return self._sent(f"/latest/meta-data/{path}", headers)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def _fresh_token(self) -> str:
        if self._token is None:
            wanted = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            self._token = self._sent("/latest/api/token", wanted, method="PUT")
        return self._token

    def _sent(self, path: str, headers: Mapping[str, str], method: str = "GET") -> str:
        # The scheme is http: `imds_at` takes no other.
        request = Request(  # noqa: S310
            f"{self._address}{path}", headers=dict(headers), method=method
        )
        with self._opener.open(request, timeout=self._timeout_seconds) as answer:
            data: bytes = answer.read(_MOST_BYTES)
        return data.decode("utf-8", "replace").strip()

    def _unheard(self, error: Exception) -> DependencyError:
        return DependencyError(
            "POLYNYA-AGT-021",
            f"the instance metadata service does not answer: {error}",
            where=self._address,
            state="the node works on; without the service a Spot notice is not seen",
            fix="let this process reach the service, or start the agent with `--imds off`",
        )


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_given: Any, **_named: Any) -> None:
        """Follow none."""
        return


def _is_ec2(root: Path) -> bool:
    for name in _MAKERS:
        try:
            if (root / name).read_text("utf-8").startswith("Amazon EC2"):
                return True
        except (OSError, UnicodeDecodeError):
            continue
    return False


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
