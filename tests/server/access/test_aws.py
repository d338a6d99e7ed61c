"""IAM identities: signed requests, against a stand-in of STS that checks the signatures."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import ReadOnlyCredentials

from polynya.server.access.aws import SERVER_HEADER, principal, refused_url, token_of
from polynya.store.aws.signed_identity import signed_identity
from polynya.testing.fakes import FakeClock
from tests.server.access.served import ROLES, Served, document_of, served

KEYS = ReadOnlyCredentials("AKIDEXAMPLE", "secret", None)
ROLE = "arn:aws:sts::111122223333:assumed-role/loader/i-0123456789"
ACCESS = """aws:
  server_id: polynya.example.com
  accounts: ["111122223333"]
  regions: [eu-central-1]
"""
LISTED = ROLES.replace(
    "can_operate: [", 'can_operate: ["aws:arn:aws:iam::111122223333:role/loader", '
)


class Sts:
    """STS as far as it is asked: it checks Signature Version 4 by itself, and says whose it is."""

    def __init__(self, arn: str = ROLE) -> None:
        self.arn, self.asked = arn, 0

    def __call__(self, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        self.asked += 1
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        given = query.pop("X-Amz-Signature")
        sent = {"host": parts.netloc, **{k.lower(): v for k, v in headers.items()}}
        names = query["X-Amz-SignedHeaders"].split(";")
        pairs = (f"{quote(k, '-_.~')}={quote(query[k], '-_.~')}" for k in sorted(query))
        canonical = "\n".join([
            "GET", "/", "&".join(pairs),
            *(f"{name}:{sent[name]}" for name in names), "", ";".join(names),
            hashlib.sha256(b"").hexdigest(),
        ])  # fmt: skip
        scope = query["X-Amz-Credential"].partition("/")[2]
        text = "\n".join([
            "AWS4-HMAC-SHA256", query["X-Amz-Date"], scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        ])  # fmt: skip
        key = b"AWS4secret"
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        if not hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), given):
            return 403, b'{"Error": {"Code": "SignatureDoesNotMatch"}}'
        result = {"Arn": self.arn, "Account": self.arn.split(":")[4], "UserId": "x"}
        answer = {"GetCallerIdentityResponse": {"GetCallerIdentityResult": result}}
        return 200, json.dumps(answer).encode()


def server_of(root: Path, sts: Sts) -> Served:
    server = served(root, ACCESS + LISTED)
    server.clock.advance(datetime.now(UTC) - server.clock.now())
    server.control.ask_sts = sts
    return server


def ask(server: Served, url: str | None) -> int:
    assert url is not None
    headers = {"Authorization": f"Bearer {token_of(url)}"}
    return server.client.get("/api/v1/project", headers=headers).status_code


def test_a_role_logs_in_by_a_signed_request(tmp_path: Path):
    sts = Sts()
    server = server_of(tmp_path, sts)
    url = signed_identity(SERVER_HEADER, "polynya.example.com", "eu-central-1", KEYS)

    assert [ask(server, url), ask(server, url)] == [200, 200]
    assert sts.asked == 1
    headers = {"Authorization": f"Bearer {token_of(url or '')}"}
    me = server.client.get("/api/v1/me", headers=headers).json()
    assert (me["name"], me["roles"]) == (
        "aws:arn:aws:iam::111122223333:role/loader", ["can_operate"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("server_id", "keys", "arn"),
    [
        ("other.example.com", KEYS, ROLE),
        ("polynya.example.com", ReadOnlyCredentials("AKIDEXAMPLE", "wrong", None), ROLE),
        ("polynya.example.com", KEYS, ROLE.replace("111122223333", "999999999999")),
        ("polynya.example.com", KEYS, "arn:aws:sts::111122223333:federated-user/x"),
        ("polynya.example.com", KEYS, "arn:aws:iam::111122223333:root"),
    ],
)
def test_a_request_for_another_server_or_of_another_identity_is_nobody(
    tmp_path: Path, server_id: str, keys: ReadOnlyCredentials, arn: str
):
    url = signed_identity(SERVER_HEADER, server_id, "eu-central-1", keys)

    assert ask(server_of(tmp_path, Sts(arn)), url) == 401


def test_nothing_is_sent_anywhere_but_to_sts():
    login = document_of(ACCESS + ROLES).aws
    assert login is not None
    now = datetime.now(UTC)
    right = signed_identity(SERVER_HEADER, "polynya.example.com", "eu-central-1", KEYS) or ""
    assert refused_url(right, login, now) is None
    for wrong in (
        right.replace("https:", "http:"),
        right.replace("sts.eu-central-1.amazonaws.com", "evil.example"),
        right.replace(
            "sts.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com.evil.example"
        ),
        right.replace(
            "sts.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com@evil.example"
        ),
        right.replace("sts.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com:8443"),
        right.replace("sts.eu-central-1", "sts.us-east-1"),
        right.replace("amazonaws.com/", "amazonaws.com/latest/meta-data"),
        right.replace("GetCallerIdentity", "AssumeRole"),
        right + "&Action=AssumeRole",
        right + "&RoleArn=x",
        right + "#x",
        right.replace("X-Amz-Expires=900", "X-Amz-Expires=90000"),
        right.replace(f"%3B{SERVER_HEADER}", ""),
    ):
        assert wrong == right or refused_url(wrong, login, now) is not None, wrong
    assert refused_url(right, login, now + timedelta(seconds=901)) is not None
    assert refused_url(right, login, now - timedelta(minutes=6)) is not None


def test_principals_are_roles_and_users():
    assert principal(ROLE) == ("111122223333", "aws:arn:aws:iam::111122223333:role/loader")
    user = "arn:aws:iam::111122223333:user/team/ann"
    assert principal(user) == ("111122223333", f"aws:{user}")
    assert principal("arn:aws:sts::1:assumed-role/x/y") is None
    assert FakeClock is not None
