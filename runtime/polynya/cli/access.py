"""`polynya access`: tokens, the table of roles, the audit log, and logins of programs by IAM."""

from __future__ import annotations

import getpass
import re
import socket
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.visible import visible
from polynya.model.access import read_access
from polynya.model.config.access import AccessDocument
from polynya.model.config.fields import parse_duration
from polynya.model.error_catalogue.access import TOKEN_UNUSABLE
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.names import shown
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.server.access.audit import AuditHead
    from polynya.server.access.control import AccessControl

app = command_group("access", "People, tokens and the audit log of a server.")
token_app = command_group("token", "Tokens of programs: make, list and revoke them.")
app.command(token_app)


def _control(context: CommandContext) -> AccessControl:
    # Start-up time: the server.
    from polynya.server.access.control import AccessControl

    target = context.load(tolerant=True).target
    return AccessControl.of(context.options.project, target, SystemClock())


def _log(control: AccessControl, command: str) -> None:
    """Write what a command changed to the audit log, under the user of this machine."""
    # Start-up time: the server.
    from polynya.server.access.actions import Action
    from polynya.server.access.audit import AuditEntry

    entry = AuditEntry(
        who=f"{getpass.getuser()}@{socket.gethostname()}",
        proof="local",
        action=Action.OWN_TOKENS.value,
        method="CLI",
        path=command,
        source="",
        status=200,
    )
    control.log(entry)


def _document(context: CommandContext) -> AccessDocument:
    document = read_access(context.options.project)
    if document is None:
        raise TOKEN_UNUSABLE(
            "the project has no `access.yml`, so that it needs no token",
            fix="write an `access.yml` with an owner",
        )
    return document


@token_app.command
def create(
    *,
    owner: str,
    action: Annotated[tuple[str, ...], Parameter(consume_multiple=True)],
    expires: str = "30d",
    note: str = "",
    context: Context,
) -> None:
    """Make a token, and print it: this is the one time that it is shown.

    It may do what it is made for, and never more than its owner may do when it is used.

    For example: `polynya access token create --owner ann@example.com --action "task.*"`.

    Args:
        owner: the person whose token it is, as `access.yml` names them.
        action: actions, or patterns such as `task.*`; `polynya access roles` lists them.
        expires: its life, such as `12h` or `30d`.
        note: what it is for.
    """
    # Start-up time: the server.
    from polynya.server.access.tokens import actions_named

    document = _document(context)
    name = owner.lower() if "@" in owner and not owner.startswith(("oidc:", "aws:")) else owner
    if not re.fullmatch(r"[^\s:@]+@[^\s:@]+|(oidc|aws):\S.{0,600}", name):
        raise TOKEN_UNUSABLE(
            f"{shown(owner)} is not a person",
            fix="write a mail address, `oidc:SUBJECT` or `aws:ARN`",
        )
    try:
        life = parse_duration(expires)
    except ValueError as error:
        raise WRONG_USAGE(f"`--expires`: {error}") from error
    control = _control(context)
    text, record = control.tokens.create(
        name, actions_named(action), life, longest=document.longest_token, note=note
    )
    _log(control, f"access token create {record.id}")
    context.output.result("token", {**record.shown(), "token": text}, text)
    context.output.note(
        f"{record.id} of {record.owner}: expires {record.expires_at:%Y-%m-%d %H:%M} UTC; "
        "it is not shown again"
    )


@token_app.command(name="list")
def list_(*, owner: str | None = None, context: Context) -> None:
    """List tokens: id, owner, expiry, last use (to the hour), actions and note.

    For example: `polynya access token list`.

    Args:
        owner: only those of one person.
    """
    found = _control(context).tokens.all(owner)
    lines = [
        f"{one.id}  {one.owner}  until {one.expires_at:%Y-%m-%d %H:%M}  "
        f"{f'used {one.used_at:%Y-%m-%d %H}h' if one.used_at else 'never used'}  "
        f"{' '.join(one.actions)}{f'  # {one.note}' if one.note else ''}"
        for one in found
    ]
    data: dict[str, object] = {"tokens": [one.shown() for one in found]}
    context.output.result("tokens", data, visible("\n".join(lines)) if lines else "no tokens")


@token_app.command
def revoke(token_id: str, /, *, context: Context) -> None:
    """Revoke a token; servers refuse it after five seconds at most.

    For example: `polynya access token revoke Zk3vX9q0LmNp`.

    Args:
        token_id: its id, as `polynya access token list` shows it.
    """
    control = _control(context)
    record = control.tokens.revoke(token_id)
    _log(control, f"access token revoke {record.id}")
    context.output.result("token.revoked", {"id": record.id}, f"{record.id} is revoked")


@app.command
def roles(*, context: Context) -> None:
    """Show which role may do what.

    For example: `polynya access roles`.
    """
    # Start-up time: the server.
    from polynya.server.access.roles import OPEN, TABLE

    table = {role.value: sorted(one.value for one in TABLE[role] - OPEN) for role in TABLE}
    lines = [f"{role}: {' '.join(actions)}" for role, actions in table.items()]
    context.output.result("roles", {"roles": table}, "\n".join(lines))


@app.command
def audit(
    *,
    verify: bool = False,
    head: str | None = None,
    last: int = 20,
    context: Context,
) -> int:
    """Show the last lines of the audit log, or check that none was changed or removed.

    For example: `polynya access audit --verify`.

    Args:
        verify: check the whole chain, and print its head: `SEQUENCE:HASH`.
        head: a head that was noted before; the log has to hold it still. Needs `--verify`.
        last: how many lines to show, the newest last.
    """
    if head is not None and not verify:
        raise WRONG_USAGE("`--head` needs `--verify`")
    log = _control(context).audit
    if verify:
        found = log.verify(_noted(head))
        text = f"{found.sequence}:{found.hash}"
        data = {"lines": found.sequence, "head": text}
        context.output.result("audit.verified", data, f"the chain is whole; its head is {text}")
        return ExitCode.OK
    lines = list(reversed(log.page(None, max(1, min(last, 10_000)))))
    text = "\n".join(
        f"{one.at:%Y-%m-%d %H:%M:%S}  {one.status}  {one.who}  {one.source}  "
        f"{one.method} {one.path}{f'  {one.code}' if one.code else ''}"
        for one in lines
    )
    shown_lines = [one.model_dump(mode="json") for one in lines]
    context.output.result("audit", {"lines": shown_lines}, visible(text) or "nothing happened yet")
    return ExitCode.OK


def _noted(head: str | None) -> AuditHead | None:
    # Start-up time: the server.
    from polynya.server.access.audit import AuditHead

    if head is None:
        return None
    sequence, _, text = head.partition(":")
    if not sequence.isdecimal() or not re.fullmatch(r"[0-9a-f]{64}", text):
        raise WRONG_USAGE("`--head` is `SEQUENCE:HASH`, as `--verify` prints it")
    return AuditHead(sequence=int(sequence[:15]), hash=text)


@app.command
def aws_token(*, server_id: str, region: str, context: Context) -> None:
    """Print a bearer token that proves the IAM identity of this process; good for 15 minutes.

    The token is a signed request to AWS STS, which the server sends on. Nothing is asked here.

    For example: `polynya access aws-token --server-id polynya.example.com --region eu-central-1`.

    Args:
        server_id: `aws.server_id` of the server's `access.yml`.
        region: a region of `aws.regions`.
    """
    # Start-up time: the AWS SDK, the server.
    from polynya.server.access.aws import SERVER_HEADER, token_of
    from polynya.store.aws.signed_identity import signed_identity

    url = signed_identity(SERVER_HEADER, server_id, region)
    if url is None:
        raise TOKEN_UNUSABLE("the AWS SDK finds no credentials", fix="log in to AWS, or use a role")
    token = token_of(url)
    context.output.result("aws.token", {"token": token}, token)
