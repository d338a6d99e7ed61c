"""`polynya serve`: the API of a project, and its catalog for other engines."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.stopping import EndedEarly, Stopping, stop_with_parent
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.operation import (
    CATALOG_ADDRESS_UNUSABLE,
    CATALOG_NEEDS_TOKEN,
    CATALOG_TLS_UNUSABLE,
    CATALOG_TOKEN_UNUSABLE,
)
from polynya.model.error_catalogue.server import SERVER_ADDRESS_OPEN
from polynya.observe.catalog import ApiServed, CatalogServed
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.engine.rest_server import RestServerSettings

_PORT: Final = 8181
_REFERENCE: Final = "env:"
_MAX_PORT: Final = 65535


@stopped_by_signals
def serve(
    *,
    catalog: bool = False,
    host: str = "127.0.0.1",
    port: int = _PORT,
    token: str | None = None,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
    context: Context,
) -> int:
    """Serve the API of the project on this machine, or with `--catalog` its catalog alone.

    Programs read tasks, datasets, documents, lineage and quarantine below `/api/v1`, ask SQL, and
    change documents: `/api/v1/openapi.json` describes each route. Below `/iceberg`, or at the root
    with `--catalog`, the server answers other engines which tables and views the project has, by
    Iceberg's REST protocol: Trino, DuckDB, Spark and PyIceberg attach to the URL and find each
    commit at once. They read the files of the tables by themselves, with their own credentials.
    Needs no Java. Ctrl-C or SIGTERM ends it.

    For example: `polynya serve --port 8181`.

    Args:
        catalog: serve only the catalog of the target, read-only; others may reach it with a token.
        host: address or name to listen on. Anything but this machine itself needs a token.
        port: port to listen on; 0 for any free one.
        token: `env:NAME`: the variable of the environment that has the token which clients have
            to send, of at least 32 bytes.
        tls_certificate: PEM file of the certificate, with those above it, for HTTPS.
        tls_key: PEM file of its key, without a password.
    """
    if not 0 <= port <= _MAX_PORT:
        raise WRONG_USAGE(f"`--port` is 0 to {_MAX_PORT}")
    try:
        stopping = Stopping.on_signals(threading.Event(), context.output, starting=True)
        if not catalog:
            if token or tls_certificate or tls_key:
                raise WRONG_USAGE("`--token` and `--tls-…` belong to `--catalog`")
            return _serve_api(context, stopping, host, port)
        return _serve(context, stopping, _settings(host, port, token, tls_certificate, tls_key))
    except EndedEarly:
        return ExitCode.OK


def _serve(context: CommandContext, stopping: Stopping, settings: RestServerSettings) -> int:
    # Start-up time: PyIceberg, sqlglot.
    from polynya.engine.rest_protocol import answer
    from polynya.engine.rest_server import RestServer
    from polynya.engine.served_catalog import ServedCatalog

    project = context.load(tolerant=True)
    for error in project.errors:
        context.output.error(error)
    served = ServedCatalog(project)
    # What stops every answer stops the start.
    served.namespaces()
    if settings.token is not None and settings.tls is None:
        context.output.warning("the token travels unencrypted: give `--tls-certificate` too")
    try:
        server = RestServer(
            settings,
            partial(answer, catalog=served),
            clock=SystemClock(),
            sink=context.output.event,
        )
    except OSError as error:
        raise CATALOG_ADDRESS_UNUSABLE(
            where=f"{settings.host}:{settings.port}", why=error.strerror or str(error)
        ) from error
    stopping.starting = False
    stop_with_parent(stopping.stop, os.environ)
    server.start()
    name = project.project.name
    context.output.event(CatalogServed(subject=name, url=server.url, target=project.target.name))
    stopping.stop.wait()
    server.stop()
    return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK


def _serve_api(context: CommandContext, stopping: Stopping, host: str, port: int) -> int:
    # Start-up time: FastAPI, PyIceberg, sqlglot.
    import uvicorn

    from polynya.engine.rest_server import is_loopback
    from polynya.server.app import app_of
    from polynya.server.state import ServerState

    project = context.load(tolerant=True)
    for error in project.errors:
        context.output.error(error)
    try:
        if not is_loopback(host):
            raise SERVER_ADDRESS_OPEN(where=host, address=host)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=256)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CATALOG_ADDRESS_UNUSABLE(where=f"{host}:{port}", why=why) from error
    state = ServerState(context.options.project, context.options.target, SystemClock())
    config = uvicorn.Config(
        app_of(state),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        limit_concurrency=512,
    )
    server = uvicorn.Server(config)
    stopping.starting = False
    stop_with_parent(stopping.stop, os.environ)
    state.overview.start()
    thread = threading.Thread(target=server.run, args=([listening],), name="api")
    thread.start()
    name = project.project.name
    where = f"[{host}]" if ":" in host else host
    url = f"http://{where}:{listening.getsockname()[1]}"
    context.output.event(ApiServed(subject=name, url=url, target=project.target.name))
    stopping.stop.wait()
    state.overview.stop()
    server.should_exit = True
    thread.join()
    return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK


def _settings(
    host: str, port: int, token: str | None, certificate: Path | None, key: Path | None
) -> RestServerSettings:
    # Start-up time: the server.
    from polynya.engine.rest_server import RestServerSettings, is_loopback

    secret = None if token is None else _token(token)
    try:
        reached_by_others = not is_loopback(host)
    except (OSError, UnicodeError) as error:
        raise CATALOG_ADDRESS_UNUSABLE(where=host, why=str(error)) from error
    if reached_by_others and secret is None:
        raise CATALOG_NEEDS_TOKEN(where=host)
    return RestServerSettings(host, port, secret, _tls(certificate, key))


def _token(reference: str) -> str:
    """The token that a reference names; it never stands in the command line."""
    # Start-up time: the server.
    from polynya.engine.rest_server import MIN_TOKEN_BYTES

    name = reference.removeprefix(_REFERENCE)
    if name == reference or not name:
        raise CATALOG_TOKEN_UNUSABLE(reason="`--token` is `env:NAME`, the name of a variable")
    token = os.environ.get(name, "")
    if not token:
        raise CATALOG_TOKEN_UNUSABLE(where=reference, reason="the variable is not set")
    if len(token.encode("utf-8", "surrogateescape")) < MIN_TOKEN_BYTES:
        raise CATALOG_TOKEN_UNUSABLE(
            where=reference, reason=f"it has fewer than {MIN_TOKEN_BYTES} bytes"
        )
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise CATALOG_TOKEN_UNUSABLE(
            where=reference, reason="it has characters that no header can have"
        )
    return token


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise WRONG_USAGE("`--tls-certificate` and `--tls-key` belong together")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A password would be asked for on the terminal.
        tls.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise CATALOG_TLS_UNUSABLE(where=str(certificate), why=str(error)) from error
    return tls
