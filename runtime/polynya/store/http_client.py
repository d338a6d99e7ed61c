"""A client for HTTP that trusts neither the servers nor the addresses that they give.

It follows no redirect, keeps no cookies, uses no proxy, and reads answers up to a limit. It refuses
connections to this machine and to its metadata service by each address that a name resolves to, and
again by the address that a socket is connected to: a name server may change its answer between.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, TypeAlias

import urllib3
from typing_extensions import override
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse, HTTPResponse

from polynya.store.clock import Clock, SystemClock
from polynya.store.node_folders import LOCAL_APIS

_PIECE_BYTES: Final = 64 * 1024
#: Of an answer that is an error, only its beginning is read.
ERROR_BYTES: Final = 16 * 1024
#: The metadata service of an EC2 instance over IPv6, which is no link-local address.
_METADATA: Final = ipaddress.ip_network("fd00:ec2::/32")
_USER_AGENT: Final = "polynya"


class NoAnswerError(Exception):
    """No whole answer came: the connection, TLS or time. Another attempt may get one."""


class AnswerTooLargeError(Exception):
    """An answer is larger than the limit."""


class ForbiddenAddressError(Exception):
    """A host is this machine, or its metadata service."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered; of an error, the first `ERROR_BYTES` of its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        """A header by its name in any case."""
        return self.headers.get(name)


def why_local(address: str) -> str | None:
    """Why nothing may be asked at an IP address, None when it may be."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if inner is not None and (why := why_local(str(inner))) is not None:
            return why
        if found in _METADATA:
            return "it is the metadata service of this machine"
    if found.is_loopback or found.is_unspecified:
        return "it is this machine"
    if found.is_link_local:
        return "it is a link-local address, such as that of the metadata service"
    return "it is a multicast address" if found.is_multicast else None


#: Why nothing may be asked at an IP address, None when it may be.
Refused: TypeAlias = Callable[[str], str | None]


def _is_named(host: str) -> bool:
    """Whether the machine names a host as one that may be asked wherever it is."""
    return LOCAL_APIS.holds(host.strip("[]").lower())


def _refuse_resolved(host: str, port: int | None, refused: Refused) -> None:
    """Raise ForbiddenAddressError if a name resolves to a place that nothing may be asked."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        # Connecting fails in the same way, with an error of its own.
        return
    for why in (refused(str(address[0])) for *_, address in found):
        if why is not None and not _is_named(host):
            raise ForbiddenAddressError(why)


def _refuse_connected(sock: socket.socket, host: str, refused: Refused) -> None:
    """Close a socket that is connected to a place that nothing may be asked."""
    peer = str(sock.getpeername()[0])
    own = str(sock.getsockname()[0])
    why = "it is this machine" if peer == own else refused(peer)
    if why is not None and not _is_named(host):
        sock.close()
        raise ForbiddenAddressError(why)


class _Guarded(HTTPConnection):
    """A connection that goes to no refused place, and whose server cannot stretch its headers."""

    refused: Refused = staticmethod(why_local)

    @override
    def _new_conn(self) -> socket.socket:
        _refuse_resolved(self.host, self.port, self.refused)
        sock = super()._new_conn()
        _refuse_connected(sock, self.host, self.refused)
        return sock

    @override
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3 has it
        sock = self.sock
        assert sock is not None, "a request was sent"
        ended = threading.Event()

        def end() -> None:
            ended.set()
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

        # The timeout of a socket begins again with each byte.
        timer = threading.Timer(sock.gettimeout() or 0.0, end)
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()
        except (HTTPException, OSError):
            if ended.is_set():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()
        if ended.is_set():
            raise TimeoutError
        return response


class _SecureGuarded(_Guarded, HTTPSConnection):
    """The same over TLS."""


def _pool_classes(refused: Refused) -> dict[str, type[HTTPConnectionPool]]:
    """The classes of urllib3's pools, whose connections refuse addresses."""

    class Plain(_Guarded):
        pass

    class Secure(_SecureGuarded):
        pass

    class Pool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    Plain.refused = Secure.refused = staticmethod(refused)
    return {"http": Pool, "https": SecurePool}


class HttpClient:
    """Sends requests. Usable from many threads.

    Args:
        timeout: longest time for one answer, from connecting to its last byte, in seconds.
        max_bytes: most bytes of an answer, decompressed.
        ca: file of the trusted authorities; None: those that this machine trusts.
        clock: measures the time that an answer takes.
        refused: addresses that are not asked, unless the machine names the host in
            `POLYNYA_LOCAL_APIS`. Default: those of this machine and its metadata service.
    """

    def __init__(
        self,
        *,
        timeout: float,
        max_bytes: int,
        ca: Path | None = None,
        clock: Clock | None = None,
        refused: Refused = why_local,
    ) -> None:
        self._timeout, self._max_bytes = timeout, max_bytes
        self._clock = clock or SystemClock()
        # Without a file, urllib3 loads what the machine trusts at the first address with https.
        context = None if ca is None else ssl.create_default_context(cafile=str(ca))
        self._pools = urllib3.PoolManager(
            retries=False,
            timeout=urllib3.Timeout(connect=timeout, read=timeout),
            ssl_context=context,
            headers={"User-Agent": _USER_AGENT},
        )
        self._pools.pool_classes_by_scheme = _pool_classes(refused)

    def get(self, url: str, headers: Mapping[str, str]) -> HttpAnswer:
        """Ask for an address. Raises as `send`."""
        return self.send("GET", url, headers)

    def post_form(
        self, url: str, headers: Mapping[str, str], fields: Mapping[str, str]
    ) -> HttpAnswer:
        """Send the fields of a form. Raises as `send`."""
        return self.send("POST", url, headers, fields)

    def send_json(
        self, method: str, url: str, headers: Mapping[str, str], value: object | None
    ) -> HttpAnswer:
        """Send a value as JSON, None for no body. Raises as `send`."""
        if value is None:
            return self.send(method, url, headers)
        typed = {**headers, "Content-Type": "application/json"}
        return self.send(method, url, typed, body=json.dumps(value).encode())

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        fields: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
    ) -> HttpAnswer:
        """Send a request, with the fields of a form or a body, and read its answer.

        An answer of any status is one.

        Raises:
            NoAnswerError: no whole answer came.
            AnswerTooLargeError: it is larger than the limit.
            ForbiddenAddressError: the host is one that nothing may be asked.
        """
        more: dict[str, Any] = (
            {"body": body}
            if fields is None
            else {"fields": dict(fields), "encode_multipart": False}
        )
        sent = {"User-Agent": _USER_AGENT, "Accept-Encoding": "gzip", **headers}
        deadline = self._clock.monotonic() + self._timeout
        try:
            response = self._pools.request(
                method, url, headers=sent, redirect=False, preload_content=False, **more
            )
        except (HTTPError, OSError, ValueError) as error:
            raise _no_answer(error) from None
        finished = False
        try:
            content = self._body(response, deadline)
            finished = True
        except (HTTPError, OSError, ValueError) as error:
            raise _no_answer(error) from None
        finally:
            if finished:
                response.release_conn()
            else:
                # What is left of the answer would be taken for the beginning of the next one.
                response.close()
        return HttpAnswer(response.status, response.headers, content)

    def _body(self, response: BaseHTTPResponse, deadline: float) -> bytes:
        failed = response.status >= 400
        most = ERROR_BYTES if failed else self._max_bytes
        body = bytearray()
        while piece := response.read1(_PIECE_BYTES, decode_content=True):
            body += piece
            if len(body) > most:
                if failed:
                    break
                raise AnswerTooLargeError(f"it has more than {most:,} bytes")
            if self._clock.monotonic() > deadline:
                raise NoAnswerError(f"the answer took longer than {self._timeout:g} s")
        return bytes(body[:most])


def _no_answer(error: Exception) -> NoAnswerError:
    """Why no answer came, without the address, which may hold a secret."""
    inner: BaseException = error
    while (cause := getattr(inner, "reason", None) or inner.__cause__) is not None:
        if not isinstance(cause, BaseException):
            break
        inner = cause
    if isinstance(inner, TimeoutError | urllib3.exceptions.TimeoutError):
        return NoAnswerError("it took too long")
    if isinstance(inner, ssl.SSLCertVerificationError):
        return NoAnswerError(f"its certificate is refused: {inner.verify_message}")
    if isinstance(inner, ssl.SSLError):
        return NoAnswerError(f"TLS: {inner.reason or inner}".replace("_", " ").lower())
    if isinstance(inner, OSError) and inner.strerror:
        return NoAnswerError(inner.strerror)
    return NoAnswerError(type(inner).__name__)
