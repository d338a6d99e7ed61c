"""`polynya serve`: the API of a project, and its catalog for other engines."""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.stopping import EndedEarly, Stopping, stop_with_parent
from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.operation import (
    CATALOG_ADDRESS_UNUSABLE,
    CATALOG_NEEDS_TOKEN,
    CATALOG_TLS_UNUSABLE,
    CATALOG_TOKEN_UNUSABLE,
)
from polynya.observe.catalog import ApiServed, CatalogServed
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.engine.rest_server import RestServerSettings
    from polynya.model.loader import LoadedProject
    from polynya.server.access.control import AccessControl, AccessSettings
    from polynya.server.configuration import FollowedConfiguration
    from polynya.server.starting import StartingApp
    from polynya.server.state import ServerState

_PORT: Final = 8181
_KEEP_ALIVE: Final = 15
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
    config: str | None = None,
    keep_operations: bool = False,
    requests_only: bool = False,
    look_seconds: float | None = None,
    keep_alive: int = _KEEP_ALIVE,
    context: Context,
) -> int:
    """Serve the API of the project, or with `--catalog` its catalog alone.

    Without an `access.yml` the API answers this machine only; with one it asks for a login or a
    token. Off loopback it starts only with TLS and an `access.yml` that has an `url`.

    Programs read tasks, datasets, documents, lineage and quarantine below `/api/v1`, ask SQL, and
    change documents: `/api/v1/openapi.json` describes each route. Below `/iceberg`, or at the root
    with `--catalog`, the server answers other engines which tables and views the project has, by
    Iceberg's REST protocol: Trino, DuckDB, Spark and PyIceberg attach to the URL and find each
    commit at once. They read the files of the tables by themselves, with their own credentials.
    Needs no Java. Ctrl-C or SIGTERM ends it.

    For example: `polynya serve --port 8181`.

    Args:
        catalog: serve only the catalog of the target, read-only; others may reach it with a token.
        host: address or name to listen on. Anything but this machine itself needs a token for a
            catalog, and TLS and a login for the API.
        port: port to listen on; 0 for any free one.
        token: `env:NAME`: the variable of the environment that has the token which clients have
            to send, of at least 32 bytes. For `--catalog` only.
        tls_certificate: PEM file of the certificate, with those above it, for HTTPS.
        tls_key: PEM file of its key, without a password.
        config: `s3://BUCKET/PREFIX` of a configuration bucket: the project folder becomes what is
            in force there, changes through the API go there, too. The folder has to be empty at
            first.
        keep_operations: keep operations in the state of the target, too, so that they survive this
            machine. One server at a time then starts operations for the target.
        requests_only: refuse actions that work on tables here, for a machine without Java. In a
            cluster its nodes do that.
        look_seconds: pause between two looks at all tables; default 5.
        keep_alive: seconds for which a connection without a request stays open; longer than the
            idle timeout of a load balancer before it.
    """
    if not 0 <= port <= _MAX_PORT:
        raise WRONG_USAGE(f"`--port` is 0 to {_MAX_PORT}")
    try:
        stopping = Stopping.on_signals(threading.Event(), context.output, starting=True)
        if not catalog:
            if token:
                raise WRONG_USAGE(
                    "`--token` belongs to `--catalog`",
                    fix="use tokens of `polynya access token create`",
                )
            if (look_seconds is not None and look_seconds <= 0) or keep_alive <= 0:
                raise WRONG_USAGE("`--look-seconds` and `--keep-alive` are more than 0")
            how = ApiServing(
                host,
                port,
                _tls(tls_certificate, tls_key),
                config=config,
                keep_operations=keep_operations,
                requests_only=requests_only,
                look_seconds=look_seconds,
                keep_alive=keep_alive,
            )
            return serve_api(context, stopping, how)
        if config or keep_operations or requests_only:
            raise WRONG_USAGE("`--config`, `--keep-operations`, `--requests-only`: not a catalog's")
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


@dataclass(frozen=True, slots=True)
class ApiServing:
    """How the API of a project is served; see the options of `serve`."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    config: str | None = None
    keep_operations: bool = False
    requests_only: bool = False
    look_seconds: float | None = None
    keep_alive: int = _KEEP_ALIVE


def serve_api(
    context: CommandContext,
    stopping: Stopping,
    how: ApiServing,
    opened: Callable[[str], None] = lambda _: None,
) -> int:
    """Serve the API until `stopping` is asked; `opened` gets its URL once pages answer.

    It answers probes at once, and requests as soon as all routes are loaded.
    """
    # Collecting garbage took a tenth of the time until the first page; what loads until then stays.
    gc.disable()
    # Start-up time: uvicorn and FastAPI.
    import uvicorn

    from polynya.server.access.control import AccessControl, AccessSettings, check_listening
    from polynya.server.http_protocol import protocol_settings
    from polynya.server.starting import StartingApp

    host, port = how.host, how.port
    followed = None if how.config is None else _followed(context, how.config)
    project = context.load(tolerant=True)
    for error in project.errors:
        context.output.error(error)
    control = AccessControl.of(context.options.project, project.target, SystemClock())
    try:
        access = AccessSettings(host, loopback=_is_loopback(host), tls=how.tls is not None)
        check_listening(access, control.document())
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=256)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CATALOG_ADDRESS_UNUSABLE(where=f"{host}:{port}", why=why) from error
    app = StartingApp(control, access)
    settings = {**protocol_settings(), "timeout_keep_alive": how.keep_alive}
    config = uvicorn.Config(app, log_config=None, **settings)
    config.load()
    config.ssl = how.tls
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="api")
    thread.start()
    try:
        name = project.project.name
        where = f"[{host}]" if ":" in host else host
        url = f"{'http' if how.tls is None else 'https'}://{where}:{listening.getsockname()[1]}"
        context.output.event(ApiServed(subject=name, url=url, target=project.target.name))
        with _routes(context, how, followed, app, (project, access, control)) as state:
            threading.Thread(target=_collect_after_start, args=(state,), daemon=True).start()
            # A browser that waits for its page would wait for ever before.
            opened(url)
            stopping.starting = False
            stop_with_parent(stopping.stop, os.environ)
            stopping.stop.wait()
    finally:
        gc.enable()
        app.give_up()
        server.should_exit = True
        thread.join()
    return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK


def _collect_after_start(state: ServerState) -> None:
    """Collect garbage from the first look at the tables on, but never in what has loaded."""
    state.overview.newest()
    gc.freeze()
    gc.enable()


@contextmanager
def _routes(
    context: CommandContext,
    how: ApiServing,
    followed: FollowedConfiguration | None,
    app: StartingApp,
    loaded: tuple[LoadedProject, AccessSettings, AccessControl],
) -> Iterator[ServerState]:
    """Load the routes, which requests wait for, and watch the tables until the end."""
    # Start-up time: PyIceberg, and the models of all routes.
    from polynya.server.access.guard import guard
    from polynya.server.app import app_of
    from polynya.server.state import ServerState

    project, access, control = loaded
    state = ServerState(
        context.options.project,
        context.options.target,
        SystemClock(),
        followed=followed,
        keeper=_machine() if how.keep_operations else None,
        requests_only=how.requests_only,
        look_seconds=how.look_seconds,
        loaded=project,
    )
    routes = app_of(state)
    guard(routes, access, control)
    state.overview.start()
    if followed is not None:
        followed.start()
    app.becomes(routes)
    try:
        yield state
    finally:
        if followed is not None:
            followed.stop()
        state.overview.stop()


def _followed(context: CommandContext, place: str) -> FollowedConfiguration:
    """The bucket that the project folder follows, read once. Raises as `begin` of it."""
    # Start-up time: the server.
    from polynya.model.names import parse_location
    from polynya.server.configuration import FollowedConfiguration
    from polynya.store.places import store_at

    location = parse_location(place, Path.cwd(), "--config")
    store = store_at(location, AwsAccess())
    folder = context.options.project
    followed = FollowedConfiguration(folder, store, str(location), context.output.event)
    followed.begin()
    return followed


def _machine() -> str:
    """The name of this machine, as its operations name it."""
    return os.environ.get("POLYNYA_NODE_ID") or socket.gethostname()


def _settings(
    host: str, port: int, token: str | None, certificate: Path | None, key: Path | None
) -> RestServerSettings:
    # Start-up time: the server.
    from polynya.engine.rest_server import RestServerSettings

    secret = None if token is None else _token(token)
    try:
        reached_by_others = not _is_loopback(host)
    except (OSError, UnicodeError) as error:
        raise CATALOG_ADDRESS_UNUSABLE(where=host, why=str(error)) from error
    if reached_by_others and secret is None:
        raise CATALOG_NEEDS_TOKEN(where=host)
    return RestServerSettings(host, port, secret, _tls(certificate, key))


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address or a name. Raises OSError for no address."""
    found = {str(one[4][0]) for one in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    return all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


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
