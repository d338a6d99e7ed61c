"""Calls that start automations: signed webhooks of other systems, and programs with a token.

A call only leaves a note in the state of the automation. Whichever process looks at automations
begins the run; nothing of what a caller sends reaches an action.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from polynya.automation.calls import (
    KEY_KEPT,
    AutomationCall,
    TakenCall,
    take_call,
    takes_api_calls,
    webhook_of,
)
from polynya.engine.errors import as_polynya
from polynya.model.automations import LoadedAutomation
from polynya.model.config.automation import WebhookTrigger
from polynya.model.error_catalogue.access import REQUEST_TOO_LARGE, TOO_MANY_REQUESTS
from polynya.model.error_catalogue.automations import (
    AUTOMATION_TAKES_NO_CALL,
    CALL_REPEATED,
    CLUSTER_NOT_WOKEN,
    WEBHOOK_REFUSED,
    WEBHOOK_SECRET_UNUSABLE,
)
from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.model.errors import DependencyError, PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.rates import Rate, RateLimits
from polynya.server.access.roles import Person
from polynya.server.routes.automations import automation_of, loaded_automations, store_of
from polynya.server.state import ServerState
from polynya.store.clock import Clock
from polynya.store.signature import SIGNATURE, WINDOW, ReceivedSignature, is_signed, received
from polynya.store.vault import vault

router = api_router("automations")

#: Of a webhook's body, which is signed and then forgotten.
MOST_BYTES: Final = 64 * 1024
#: Calls that are not genuine, of an address; genuine ones of a webhook, and of a person.
STRANGERS: Final = Rate(20, 0.2)
CALLS: Final = Rate(20, 1.0)
_SHORTEST_SECRET: Final = 16
_OPENING: Final = threading.Lock()


class CallTaken(BaseModel):
    """The run that a call starts: `run` is its id, also before it begins.

    `joined`: the run waited already for another call, and starts once for both. `repeated`: the
    same call, by its `Idempotency-Key`, was taken before.
    """

    automation: str
    run: str
    joined: bool
    repeated: bool


class ApiCall(BaseModel):
    """Why the automation is called, for the log of its run."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(default="", max_length=200)


@dataclass(slots=True)
class _Limits:
    """How often may be called; of one server."""

    clock: Clock
    strangers: RateLimits = field(init=False)
    calls: RateLimits = field(init=False)

    def __post_init__(self) -> None:
        self.strangers = RateLimits(STRANGERS, self.clock)
        self.calls = RateLimits(CALLS, self.clock)


def _take(limits: RateLimits, name: str) -> None:
    """Count a call. Raises RefusedError POLYNYA-ACC-012 beyond the limit."""
    if seconds := limits.take(name):
        raise TOO_MANY_REQUESTS(name=name).by(429, Retry_After=str(int(seconds) + 1))


def _limits(request: Request) -> _Limits:
    with _OPENING:
        found = getattr(request.app.state, "automation_calls", None)
        if found is None:
            found = request.app.state.automation_calls = _Limits(ServerState.of(request).clock)
        assert isinstance(found, _Limits)
        return found


@router.post(
    "/automations/{name}/webhooks/{webhook}",
    dependencies=[allowed(Action.CALL_WEBHOOK)],
    status_code=202,
    openapi_extra={"requestBody": {"content": {"*/*": {"schema": {"type": "string"}}}}},
)
async def call_webhook(
    request: Request,
    response: Response,
    name: str,
    webhook: str,
    polynya_signature: Annotated[str | None, Header(max_length=200)] = None,
) -> CallTaken:
    """Start an automation that has this webhook, by a call that its secret signed.

    The body may be anything up to 64 KiB: it is signed, and not used.
    """
    body = await _body(request)
    return await run_in_threadpool(
        _webhook_called, request, response, (name, webhook), polynya_signature, body
    )


async def _body(request: Request) -> bytes:
    found = b""
    async for piece in request.stream():
        found += piece
        if len(found) > MOST_BYTES:
            raise REQUEST_TOO_LARGE(part="body", limit=f"{MOST_BYTES:,} bytes").by(413)
    return found


def _webhook_called(
    request: Request,
    response: Response,
    place: tuple[str, str],
    header: str | None,
    body: bytes,
) -> CallTaken:
    limits, now = _limits(request), ServerState.of(request).clock.now()
    address = request.client.host if request.client is not None else ""
    signature = received(header, now)
    reason = signature if isinstance(signature, str) else "the signature is not of its secret"
    one = loaded_automations(request)[0].get(place[0])
    trigger = None if one is None else webhook_of(one.settings, place[1])
    if isinstance(signature, str) or not _is_genuine(trigger, signature, body):
        # Only now: others may have the same address, as behind a load balancer.
        _take(limits.strangers, address)
        raise WEBHOOK_REFUSED(reason=reason).by(401, WWW_Authenticate=SIGNATURE)
    assert one is not None, "a webhook that does not exist is never genuine"
    sender = f"webhook:{place[0]}/{place[1]}"
    # For the line of the audit log.
    request.scope["polynya.person"] = Person(sender)
    _take(limits.calls, sender)
    known_until = datetime.fromtimestamp(signature.seconds + 1, UTC) + WINDOW
    why = f"the webhook {place[1]} called"
    call = AutomationCall(why, secrets.token_hex(4), f"{place[1]} {signature.hex}", known_until)
    taken = take_call(store_of(request), one.settings, call, now)
    _wake(request, one.settings.name, taken, sender)
    if taken.is_repeated:
        raise CALL_REPEATED(where=one.settings.name, run=taken.run)
    return _answer(response, one, taken)


def _is_genuine(trigger: WebhookTrigger | None, signature: ReceivedSignature, body: bytes) -> bool:
    if trigger is None:
        # As long as for one that exists, so that nobody learns which do.
        is_signed(secrets.token_hex(32), signature, body)
        return False
    try:
        secret = vault().open(trigger.secret.get_secret_value()).text
    except DependencyError as error:
        raise WEBHOOK_SECRET_UNUSABLE(
            webhook=trigger.webhook, reason=f"it cannot be read ({error.code})"
        ).by(503) from error
    if len(secret.encode()) < _SHORTEST_SECRET:
        reason = f"it has fewer than {_SHORTEST_SECRET} bytes"
        raise WEBHOOK_SECRET_UNUSABLE(webhook=trigger.webhook, reason=reason).by(503)
    return is_signed(secret, signature, body)


@router.post(
    "/automations/{name}/calls", dependencies=[allowed(Action.CALL_AUTOMATION)], status_code=202
)
def call(
    request: Request,
    response: Response,
    name: str,
    asked: ApiCall,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> CallTaken:
    """Start an automation that has the trigger `api`, by its own rules for runs that overlap.

    With `Idempotency-Key` a call can be repeated for 24 hours: the answer is the same run.
    """
    one = automation_of(request, name)
    if not takes_api_calls(one.settings):
        raise AUTOMATION_TAKES_NO_CALL(
            where=name, reason="its file has no trigger `api`", fix="add `- api: true` to it"
        )
    if not asked.reason.isprintable():
        raise REQUEST_INVALID(reason="`reason` is not one line of text")
    person, now = caller(request)[0], ServerState.of(request).clock.now()
    _take(_limits(request).calls, f"{person.name} {name}")
    why = f"{person.name} called by the API" + (f": {asked.reason}" if asked.reason else "")
    key = None
    if idempotency_key is not None:
        # A person names calls of their own only.
        text = f"{person.name}\0{idempotency_key}"
        key = f"api {hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"
    wanted = AutomationCall(why, secrets.token_hex(4), key, now + KEY_KEPT)
    taken = take_call(store_of(request), one.settings, wanted, now)
    _wake(request, name, taken, person.name)
    return _answer(response, one, taken)


def _wake(request: Request, name: str, taken: TakenCall, by: str) -> None:
    """Want a node in a cluster that has none, for a run that waits.

    A call that is repeated wakes, too: the server may have died after it had taken the call.
    """
    if taken.is_repeated and not store_of(request).read(name)[0].waits_for(taken.run):
        return
    state = ServerState.of(request)
    try:
        state.clusters.wake(state.project(), by, f"automation {name} was called")
    except (PolynyaError, OSError) as error:
        why = as_polynya(error).message
        raise CLUSTER_NOT_WOKEN(where=name, run=taken.run, why=why) from error


def _answer(response: Response, one: LoadedAutomation, taken: TakenCall) -> CallTaken:
    name = one.settings.name
    response.headers["Location"] = f"/api/v1/automations/{name}/runs/{taken.run}"
    return CallTaken(
        automation=name, run=taken.run, joined=taken.has_joined, repeated=taken.is_repeated
    )
