"""Attacks on a server that listens: each returns what it found, "" for nothing.

The server has a small project, real sockets, sessions and tokens.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import quote

from polynya.server.access.actions import Action
from polynya.server.access.door import route_actions
from polynya.server.access.tokens import Tokens
from polynya.store.signature import SIGNATURE, signature_of
from tests.server.access.served import Served

SECRET: Final = "hunter2-secret"


@dataclass
class Target:
    """A server, where it listens, and the people that attack it."""

    server: Served
    port: int
    head_seconds: float
    attacks: int = 0
    victim: dict[str, str] = field(default_factory=dict)
    attacker: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        origin = {"Origin": f"http://127.0.0.1:{self.port}"}
        self.victim = self.server.session("ann@example.com") | origin
        self.attacker = self.server.session("vera@example.com") | origin

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
    ) -> tuple[int, str, Mapping[str, str]]:
        """One request on a connection of its own: status, body, headers. Status 0: closed."""
        self.attacks += 1
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, path, skip_host=bool(headers and "Host" in headers))
            for name, text in (headers or {}).items():
                connection.putheader(name, text)
            if body is not None:
                data = body.encode() if isinstance(body, str) else body
                connection.putheader("Content-Length", str(len(data)))
                connection.endheaders(data)
            else:
                connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace"), answer.headers
        except (OSError, http.client.HTTPException):
            return 0, "", {}
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """What the server answers to these bytes."""
        self.attacks += 1
        with socket.create_connection(("127.0.0.1", self.port), 10) as client:
            client.settimeout(2)
            found = b""
            try:
                client.sendall(data)
                while piece := client.recv(65536):
                    found += piece
            except OSError:
                pass
            return found


JSON: Final = {"Content-Type": "application/json"}


def idor(target: Target) -> str:
    """Reach tokens and sessions of another person by their ids."""
    _, record = target.server.control.tokens.create(
        "ann@example.com", frozenset({Action.RUN}), timedelta(days=1), longest=timedelta(days=1)
    )
    [key] = [key for key, _ in target.server.control.sessions.of("ann@example.com")]
    target.ask("DELETE", f"/api/v1/access/tokens/{record.id}", target.attacker)
    target.ask("DELETE", f"/api/v1/me/sessions/{key[:16]}", target.attacker)
    _, listed, _ = target.ask("GET", "/api/v1/access/tokens?everybody=true", target.attacker)
    if record.id in listed:
        return "the tokens of another person are listed"
    if not target.server.control.tokens.all("ann@example.com"):
        return "a token of another person was revoked"
    status, _, _ = target.ask("GET", "/api/v1/project", target.victim)
    return "" if status == 200 else "a session of another person was ended"


def escalation(target: Target) -> str:
    """Do what only others may, by each route, and raise oneself."""
    for route in route_actions(target.server.app.routes):
        if route.action not in {Action.MANAGE_ACCESS, Action.VIEW_AUDIT, Action.VIEW_ACCESS}:
            continue
        for method in set(route.methods) - {"HEAD", "OPTIONS"}:
            headers = {**target.attacker, **JSON, "If-Match": "*", "X-Polynya-Role": "owner",
                       "X-Forwarded-User": "ann@example.com", "X-Remote-User": "ann@example.com",
                       "X-HTTP-Method-Override": "GET"}  # fmt: skip
            status, _, _ = target.ask(method, route.path, headers, '{"text": ""}')
            if status not in {401, 403}:
                return f"{method} {route.path} answers {status} to can_view"
    body = json.dumps({"actions": ["*"], "owner": "ann@example.com", "roles": ["owner"]})
    status, _, _ = target.ask("POST", "/api/v1/access/tokens", {**target.attacker, **JSON}, body)
    return "" if status == 422 else f"a token of all actions is made for can_view: {status}"


def csrf(target: Target) -> str:
    """Send changes as pages of other sites can."""
    cookie = {"Cookie": target.victim["Cookie"]}
    origins: tuple[dict[str, str], ...] = (
        {}, {"Origin": "https://evil.example"}, {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{target.port}.evil.example"},
        {"Origin": f"https://127.0.0.1:{target.port}"},
        {"Referer": f"http://127.0.0.1:{target.port}/"},
        {"Sec-Fetch-Site": "same-site"},
    )  # fmt: skip
    types = ("text/plain", "application/x-www-form-urlencoded", "application/json")
    for headers in origins:
        for kind in types:
            sent = {**cookie, **headers, "Content-Type": kind}
            body = '{"actions": ["project.view"]}'
            status, _, _ = target.ask("POST", "/api/v1/access/tokens", sent, body)
            if status != 403:
                return f"{headers} with {kind} is answered {status}"
    _, _, answer = target.ask("OPTIONS", "/api/v1/me", {"Origin": "https://evil.example"})
    if any(name.lower().startswith("access-control-allow") for name in answer):
        return "other origins may read answers"
    return ""


def traversal(target: Target) -> str:
    """Read files by paths, in every parameter of a path."""
    (target.server.root / "secret.txt").write_text(SECRET)
    parts = ["../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "....//secret.txt",
             "/etc/passwd", "..%5csecret.txt", "%00secret.txt", "..%c0%afsecret.txt",
             "%252e%252e%252fsecret.txt", "file:///etc/passwd"]  # fmt: skip
    places = {
        re.sub(r"\{[^}]*\}", "{}", route.path) for route in route_actions(target.server.app.routes)
    }
    for place in sorted(places):
        for part in parts:
            path = place.replace("{}", part, 1) if "{}" in place else f"{place}/{part}"
            status, body, _ = target.ask("GET", path, target.victim)
            if SECRET in body or "root:" in body:
                return f"GET {path} shows a file"
            if status >= 500:
                return f"GET {path} answers {status}"
    return ""


def forgery(target: Target) -> str:
    """Have the server ask addresses of the attacker's choice."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.3)
        port = trap.getsockname()[1]
        url = f"http://127.0.0.1:{port}/latest/meta-data"
        token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        target.ask("GET", "/api/v1/me", {"Authorization": f"Bearer polynya-aws-v1.{token}"})
        head = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "jku": url}).encode()).decode()
        target.ask("GET", "/api/v1/me", {"Authorization": f"Bearer {head}.e30.x"})
        target.ask("GET", f"/api/v1/login?to={quote(url)}")
        target.ask("GET", f"/api/v1/login/callback?code=x&state=x&iss={quote(url)}")
        target.ask("GET", url, target.attacker)
        try:
            trap.accept()[0].close()
        except TimeoutError:
            return ""
        return "the server asks an address that a client names"


#: Places inside: this machine, its metadata service, networks that nobody outside reaches, and
#: other ways to write them. `PORT` is that of a trap on this machine.
INSIDE: Final = (
    "127.0.0.1:PORT", "localhost:PORT", "127.1:PORT", "2130706433:PORT", "0x7f000001:PORT",
    "0177.0.0.1:PORT", "0.0.0.0:PORT", "[::1]:PORT", "[::]:PORT", "[::ffff:127.0.0.1]:PORT",
    "[::ffff:7f00:1]:PORT", "LOCALHOST.:PORT", "169.254.169.254", "0xa9fea9fe", "2852039166",
    "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "10.0.0.1", "172.16.0.1",
    "192.168.0.1", "100.64.0.1", "[fc00::1]", "[fe80::1]", "224.0.0.1", "198.18.0.1", "240.0.0.1",
)  # fmt: skip


def inside(target: Target) -> str:
    """Have the server ask addresses inside, by webhooks and connections that an editor writes."""
    editor = target.server.session("eva@example.com") | {"Origin": target.victim["Origin"]}
    with socket.create_server(("127.0.0.1", 0)) as trap, trap_of_redirects() as (public, name):
        trap.settimeout(0.3)
        port = trap.getsockname()[1]
        places = [one.replace("PORT", str(port)) for one in INSIDE]
        hooks = [*(f"http://{one}/latest" for one in places), f"http://rebound.example:{port}/",
                 f"{public}/to/127.0.0.1:{port}"]  # fmt: skip
        with names_that_change("rebound.example"), machine_names(name):
            found = _tested(target, editor, hooks)
            for url in hooks[:-1]:
                if found.get(url) != "POLYNYA-NTF-005":
                    return f"a webhook to {url} is {found.get(url)}"
            if found[hooks[-1]] != "POLYNYA-NTF-004":
                return f"a redirect is {found[hooks[-1]]}"
        for network in ("127.0.0.0/8", "169.254.0.0/16", "::1/128"):
            allowed = _hooks([f"http://{places[0]}"], f", allowed_networks: ['{network}']")
            if _put(target, editor, "notifications/own.yml", allowed) != 422:
                return f"a webhook may allow {network}"
        for place in ("169.254.169.254", "0xa9fea9fe", "[fd00:ec2::254]", "[fe80::1]"):
            for setting in (
                f"catalog: {{type: rest, uri: 'http://{place}/latest'}}",
                f"aws: {{region: eu-central-1, endpoint: 'http://{place}'}}",
            ):
                text = (target.server.root / "polynya.yml").read_text()
                bad = text.replace("./warehouse}", f"./warehouse, {setting}}}")
                etag = target.ask("GET", "/api/v1/documents/polynya.yml", editor)[2]["ETag"]
                if _put(target, editor, "polynya.yml", bad, etag) != 422:
                    return f"a target may have {setting}"
        # A name that changes is noticed by the address of the connection, before a byte is sent.
        try:
            while True:
                with trap.accept()[0] as client:
                    client.settimeout(1)
                    if client.recv(1):
                        return "the server asks itself"
        except TimeoutError:
            return ""


def _hooks(urls: list[str], more: str = "") -> str:
    """A file of notifications with a webhook for each address."""
    channels = "".join(
        f"  c{n}: {{type: webhook, url: '{url}', allow_unencrypted: true, timeout: 3s{more}}}\n"
        for n, url in enumerate(urls)
    )
    head = "apiVersion: polynya/v1\nkind: notification\n"
    return f"{head}channels:\n{channels}rules: {{all: {{}}}}\n"


def _put(
    target: Target, person: Mapping[str, str], path: str, text: str, etag: str | None = None
) -> int:
    version = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
    headers = {**person, **version, "Content-Type": "text/plain"}
    return target.ask("PUT", f"/api/v1/documents/{path}", headers, text)[0]


def _tested(target: Target, person: Mapping[str, str], urls: list[str]) -> dict[str, str]:
    """The codes with which test messages to addresses fail."""
    status = _put(target, person, "notifications/evil.yml", _hooks(urls))
    if status != 200:
        return dict.fromkeys(urls, f"a document that is answered {status}")
    _, body, _ = target.ask(
        "POST", "/api/v1/notifications/test", {**person, **JSON}, '{"name": "evil"}'
    )
    codes = {one["channel"]: (one["error"] or {}).get("code", "sent") for one in json.loads(body)}
    return {url: codes[f"evil.c{n}"] for n, url in enumerate(urls)}


@contextmanager
def trap_of_redirects() -> Iterator[tuple[str, str]]:
    """A server that the machine names, which redirects `/to/PLACE`: its address and its name."""
    from tests.streams.rest.server import Asked, Reply, local_api

    def redirected(asked: Asked) -> Reply:
        place = asked.path.removeprefix("/to/")
        return Reply({}, 307, {"Location": f"http://{place}/latest"})

    with local_api(redirected) as api:
        yield f"http://public.example:{api.server.server_address[1]}", "public.example"


@contextmanager
def names_that_change(name: str) -> Iterator[None]:
    """A name server that answers a check with a public address, and a connection with loopback."""
    own, asked = socket.getaddrinfo, iter(range(1000))

    def changing(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host == name:
            host = "93.184.216.34" if next(asked) % 2 == 0 else "127.0.0.1"
        return own("127.0.0.1" if host == "public.example" else host, port, *args, **more)

    with patch("socket.getaddrinfo", changing):
        yield


@contextmanager
def machine_names(name: str) -> Iterator[None]:
    """The machine names one host as a local API."""
    with patch.dict(os.environ, {"POLYNYA_LOCAL_APIS": name}):
        yield


def replay(target: Target) -> str:
    """Use tokens, sessions and states again that have ended."""
    tokens: Tokens = target.server.control.tokens
    text, record = tokens.create(
        "ann@example.com", frozenset(Action), timedelta(hours=1), longest=timedelta(days=1)
    )
    header = {"Authorization": f"Bearer {text}"}
    if target.ask("GET", "/api/v1/project", header)[0] != 200:
        return "a new token does not work"
    tokens.revoke(record.id)
    if target.ask("GET", "/api/v1/project", header)[0] != 401:
        return "a revoked token works"
    short, _ = tokens.create(
        "ann@example.com", frozenset(Action), timedelta(seconds=1), longest=timedelta(days=1)
    )
    time.sleep(1.1)
    if target.ask("GET", "/api/v1/project", {"Authorization": f"Bearer {short}"})[0] != 401:
        return "an expired token works"
    origin = {"Origin": f"http://127.0.0.1:{target.port}"}
    session = target.server.session("max@example.com") | origin
    target.ask("POST", "/api/v1/logout", session)
    if target.ask("GET", "/api/v1/project", session)[0] != 401:
        return "a session works after its logout"
    return ""


def guessing(target: Target) -> str:
    """Guess tokens by a loop; the time of an answer must not help, and the loop must be stopped."""
    statuses = [
        target.ask("GET", "/api/v1/me", {"Authorization": f"Bearer polynya_{'a' * 12}_{'b' * 43}"})[
            0
        ]
        for _ in range(60)
    ]
    time.sleep(1)
    return "" if 429 in statuses else "sixty guesses are answered"


def webhooks(target: Target) -> str:
    """Start an automation by calls that are forged, changed, old, or sent before."""
    secret = "of-the-hook-0123456789"
    text = (
        "apiVersion: polynya/v1\nkind: automation\nname: hooked\n"
        "triggers: [{webhook: hook, secret: '${env:HOOK_SECRET}'}]\nactions: [{validate: true}]\n"
    )
    place = "/api/v1/automations/hooked/webhooks/hook"
    with patch.dict(os.environ, {"HOOK_SECRET": secret}):
        (target.server.root / "automations").mkdir(exist_ok=True)
        (target.server.root / "automations" / "hooked.yml").write_text(text)
        now = datetime.now(UTC)
        good = signature_of(secret, now, b"a")
        for header, body in (
            (None, b"a"), ("", b"a"), (good, b"b"), (good, b""), (good.upper(), b"a"),
            (f"{good},{good}", b"a"), (signature_of("", now, b"a"), b"a"),
            (signature_of("${env:HOOK_SECRET}", now, b"a"), b"a"),
            (signature_of(secret, now - timedelta(minutes=6), b"a"), b"a"),
            (signature_of(secret, now + timedelta(minutes=6), b"a"), b"a"),
        ):  # fmt: skip
            sent = {} if header is None else {SIGNATURE: header}
            if (status := target.ask("POST", place, sent, body)[0]) != 401:
                return f"a call with {header} is answered {status}"
        if (status := target.ask("POST", place, {SIGNATURE: good}, b"a")[0]) != 202:
            return f"a genuine call is answered {status}"
        if (status := target.ask("POST", place, {SIGNATURE: good}, b"a")[0]) != 409:
            return f"a repeated call is answered {status}"
    return ""


def oversized(target: Target) -> str:
    """Send more than a server should take."""
    length = {**target.victim, **JSON, "Content-Length": "99999999999"}
    line = "\r\n".join(f"{name}: {text}" for name, text in length.items())
    head = f"POST /api/v1/access/tokens HTTP/1.1\r\nHost: 127.0.0.1\r\n{line}\r\n\r\n".encode()
    if b" 413 " not in target.raw(head):
        return "a body of 100 GB is waited for"
    status, _, _ = target.ask(
        "POST", "/api/v1/access/tokens", {**target.victim, **JSON}, b"[" * 3_000_000
    )
    if status not in {0, 413}:
        return f"a body of 3 MB is answered {status}"
    deep = "[" * 100_000
    status, _, _ = target.ask("POST", "/api/v1/access/tokens", {**target.victim, **JSON}, deep)
    if not 400 <= status < 500:
        return f"a deep body is answered {status}"
    status, _, _ = target.ask("GET", "/api/v1/me?" + "a=1&" * 5000)
    if status not in {400, 414}:
        return f"a long address is answered {status}"
    if not target.raw(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n").startswith(
        b"HTTP/1.1 4"
    ):
        return "any number of headers is taken"
    return ""


def slow(target: Target) -> str:
    """Keep connections open with a byte now and then, while others are served."""
    target.attacks += 50
    clients = [socket.create_connection(("127.0.0.1", target.port), 5) for _ in range(50)]
    try:
        for client in clients:
            client.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        if target.ask("GET", "/api/v1/project", target.victim)[0] != 200:
            return "slow clients keep others out"
        ends = time.monotonic() + target.head_seconds + 3
        while clients and time.monotonic() < ends:
            for client in list(clients):
                try:
                    client.settimeout(0.01)
                    client.sendall(b"X: y\r\n")
                    if client.recv(10) == b"":
                        raise ConnectionResetError
                except TimeoutError:
                    pass
                except OSError:
                    client.close()
                    clients.remove(client)
            time.sleep(0.1)
        return f"{len(clients)} slow connections stay open" if clients else ""
    finally:
        for client in clients:
            client.close()


def injection(target: Target) -> str:
    """Put headers and lines into answers, requests and the audit log."""
    for text in ("/x%0d%0aSet-Cookie:%20a=b", "%0d%0aLocation:%20https://evil.example"):
        _, _, headers = target.ask("GET", f"/api/v1/login?to={text}")
        if "a=b" in str(headers) or headers.get("Location", "").startswith("https://evil"):
            return "a header is put into an answer"
    smuggled = (
        b"POST /api/v1/logout HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/access HTTP/1.1\r\n\r\n"
    )
    if target.raw(smuggled).count(b"HTTP/1.1 200"):
        return "a request is smuggled into another one"
    target.raw(b"GET /api/v1/access HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n")
    target.ask("GET", "/api/v1/access/%0a%7b%22who%22:%22ann%22%7d", {"Authorization": "Bearer x"})
    target.server.control.audit.verify()
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example"):
        if target.ask("GET", "/api/v1/project", {**target.victim, "Host": host})[0] != 421:
            return f"the host {host} is answered"
    return ""


def algorithms(target: Target) -> str:
    """Send tokens without a signature, or signed by what everybody knows."""
    claims = {"sub": "1", "email": "ann@example.com", "email_verified": True, "aud": "polynya",
              "iss": "https://id.example.com", "exp": 4102444800, "iat": 1}  # fmt: skip
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    for algorithm in ("none", "None", "NONE", "HS256", "HS512", ""):
        head = (
            base64.urlsafe_b64encode(json.dumps({"alg": algorithm}).encode()).decode().rstrip("=")
        )
        for signature in ("", "x", base64.urlsafe_b64encode(b"\0" * 32).decode().rstrip("=")):
            header = {"Authorization": f"Bearer {head}.{body}.{signature}"}
            while (status := target.ask("GET", "/api/v1/project", header)[0]) == 429:
                time.sleep(0.3)
            if status not in {401, 503}:
                return f"a token with alg {algorithm!r} is answered {status}"
    time.sleep(3)
    return ""


def redirection(target: Target) -> str:
    """Have a login lead to another site."""
    from polynya.server.access.oidc import local_path

    evil = "evil.example"
    for before in ("https://", "//", "/\\", "\\\\", "/%5c", "///", "http:", "/.//"):
        to = f"{before}{evil}"
        _, _, headers = target.ask("GET", f"/api/v1/login?to={quote(to)}")
        place = headers.get("Location", "") or local_path(to)
        if "evil" in place and not re.match(r"/[^/\\]", place):
            return f"a login leads to {place}"
    return ""


def fixation(target: Target) -> str:
    """Bring a session along that the attacker chose."""
    chosen = {"Cookie": f"__Host-polynya={'A' * 43}"}
    status, _, headers = target.ask("GET", "/api/v1/project", chosen)
    if status != 401:
        return f"a session that the client chose is answered {status}"
    two = {"Cookie": f"{target.victim['Cookie']}; {target.attacker['Cookie']}"}
    status, body, headers = target.ask("GET", "/api/v1/me", two)
    if "A" * 43 in str(headers):
        return "a cookie that the client chose is set"
    return "" if status == 200 and ("ann@" in body) != ("vera@" in body) else "two sessions are one"


def disclosure(target: Target) -> str:
    """Find secrets, versions and inner texts in answers."""
    header = target.server.token("ann@example.com")
    text = header["Authorization"][7:]
    for route in route_actions(target.server.app.routes):
        if "{" in route.path or "GET" not in route.methods:
            continue
        _, body, headers = target.ask("GET", route.path, header)
        if text in body or text[-43:] in body:
            return f"{route.path} shows a token"
        if "Traceback" in body or str(target.server.root) in body:
            return f"{route.path} shows the inside of the server"
        if "server" in {name.lower() for name in headers}:
            return "the server says what it is"
    return ""


ATTACKS: Final[Mapping[str, Callable[[Target], str]]] = {
    one.__name__: one
    for one in (
        idor, escalation, csrf, traversal, forgery, inside, webhooks, replay, oversized, slow,
        injection, algorithms, redirection, fixation, disclosure, guessing,
    )
}  # fmt: skip


def findings(target: Target) -> dict[str, str]:
    """What each attack finds, without those that find nothing."""
    found = {name: attack(target) for name, attack in ATTACKS.items()}
    return {name: text for name, text in found.items() if text}
