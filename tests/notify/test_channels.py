"""Messages through real servers: what arrives, what is refused, and what no error shows."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from polynya.model.config.aws import AwsAccess
from polynya.model.config.notification import Channel, NotificationRule
from polynya.model.errors import PolynyaError
from polynya.notify.channels import sender, why_refused
from polynya.notify.conditions import Condition, Key
from polynya.notify.decide import Notice, Route
from polynya.notify.message import NotificationMessage, message_of
from tests.aws import REGION, aws_server, client
from tests.notify.post_office import post_office
from tests.streams.kafka.certificates import Authority
from tests.streams.rest.server import Asked, LocalApi, Reply, local_api

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
SECRET = "s3cr3t"
HOSTILE = "crm.users\r\nBcc: a@b.c\u202e<!channel>@everyone"


def a_message(name: str = "crm.users", notices: int = 1) -> NotificationMessage:
    """A message about datasets that failed."""
    conditions = [
        Condition(
            Key("failed", f"{name}{number or ''}"), "crm", "error", "the table is gone", NOW, NOW,
            code="POLYNYA-LAKE-001",
        )
        for number in range(notices)
    ]  # fmt: skip
    route = Route("oncall", "all", "ops", NotificationRule())
    found = tuple(Notice("opened", one, "it was not told yet") for one in conditions)
    return message_of(route, found, {}, project="shop", target="prod", now=NOW)


def send(
    channel: dict[str, Any],
    message: NotificationMessage | None = None,
    access: AwsAccess | None = None,
):
    """Send a message through a channel, as its file would have it."""
    settings: Any = TypeAdapter(Channel).validate_python(channel)
    sender("oncall.ops", settings, access or AwsAccess())(message or a_message(), NOW)


def failure(channel: dict[str, Any], **more: Any) -> str:
    """Why a message was not sent."""
    with pytest.raises(PolynyaError) as caught:
        send(channel, **more)
    return f"{caught.value.code} {caught.value}: {caught.value.why}"


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine allows servers on itself."""
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")


def taking(asked: Asked) -> Any:
    return {}


def mail(port: int, **more: Any) -> dict[str, Any]:
    return {"type": "mail", "host": "127.0.0.1", "port": port, "from": "p@acme.org",
            "to": ["ops@acme.org", "crm@acme.org"], **more}  # fmt: skip


def webhook(api: LocalApi, **more: Any) -> dict[str, Any]:
    return {"type": "webhook", "url": f"{api.url}/hook", **more}


def test_a_mail_says_what_failed_and_what_to_do() -> None:
    with post_office() as office:
        send(mail(office.port, tls="none"))

    [found] = office.mails
    assert found["Subject"] == "[polynya shop] crm.users: the table is gone"
    assert found["To"] == "ops@acme.org, crm@acme.org"
    assert found["Auto-Submitted"] == "auto-generated"
    text = found.get_content()  # type: ignore[attr-defined]
    assert "error: crm.users: the table is gone (POLYNYA-LAKE-001)" in text
    assert "polynya explain POLYNYA-LAKE-001" in text


def test_the_name_of_a_table_adds_no_header_and_no_mention() -> None:
    with post_office() as office:
        send(mail(office.port, tls="none"), a_message(HOSTILE))

    [found] = office.mails
    assert found["Bcc"] is None
    assert "\u202e" not in found.get_content()  # type: ignore[attr-defined]


def test_a_login_is_sent_over_tls_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority.of(tmp_path, "authority")
    whole = authority.signs("mail", host="IP:127.0.0.1")
    login = {"user": "polynya", "password": SECRET}
    with post_office(whole) as office:
        # Nobody vouches for the certificate yet.
        assert "certificate is refused" in failure(mail(office.port, **login))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        send(mail(office.port, **login))
    with post_office() as plain:
        assert "POLYNYA-NTF-004" in failure(mail(plain.port, **login))

    assert office.encrypted == [True]
    assert "AUTH" not in plain.commands and plain.mails == []


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA"])
def test_an_answer_of_a_mail_server_is_quoted_nowhere(verb: str) -> None:
    with post_office(refuses=verb) as office:
        text = failure(mail(office.port, tls="none"))

    assert "POLYNYA-NTF-004" in text and SECRET not in text


def test_a_webhook_gets_json_that_its_key_signs() -> None:
    with local_api(taking) as api:
        send(webhook(api, secret=SECRET, token="t0ken"), a_message(HOSTILE))

    [asked] = api.asked
    time, signed = asked.headers["Polynya-Signature"].split(",")
    seconds = time.removeprefix("t=")
    wanted = hmac.new(SECRET.encode(), f"{seconds}.{asked.body}".encode(), hashlib.sha256)
    assert signed == f"v1={wanted.hexdigest()}" and int(seconds) == NOW.timestamp()
    assert asked.headers["Authorization"] == "Bearer t0ken"
    body = json.loads(asked.body)
    assert asked.headers["Polynya-Delivery"] == body["id"]
    [notice] = body["notices"]
    assert (notice["cause"], notice["name"], notice["code"]) == (
        "failed", HOSTILE, "POLYNYA-LAKE-001"
    )  # fmt: skip


def test_a_message_is_the_same_one_when_it_is_sent_again() -> None:
    assert a_message().id == a_message().id != a_message("crm.orders").id


def test_a_message_about_hundreds_of_tables_stays_short() -> None:
    message = a_message(notices=500)

    assert message.subject == "[polynya shop] 500 open: crm.users and others"
    assert "and 480 more" in message.text
    assert len(message.body["notices"]) == 20 and message.body["more"] == 480


@pytest.mark.parametrize("status", [302, 400, 401, 500])
def test_a_webhook_that_does_not_take_a_message_is_told(status: int) -> None:
    def refusing(asked: Asked) -> Any:
        return Reply({}, status=status, headers={"Location": "http://169.254.169.254/"})

    with local_api(refusing) as api:
        text = failure(webhook(api, secret=SECRET, token=SECRET))

    assert f"the server answered {status}" in text and SECRET not in text
    assert len(api.asked) == 1


def test_a_slow_webhook_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "took too long" in failure({"type": "webhook", "url": url, "timeout": "300ms"})


def test_a_webhook_leads_to_no_machine_that_it_must_not_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POLYNYA_LOCAL_APIS")
    with local_api(taking) as api:
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
            url = f"http://{host}:{api.server.server_address[1]}/"
            assert "POLYNYA-NTF-005" in failure(
                {"type": "webhook", "url": url, "allow_unencrypted": True}
            )

    assert api.asked == []


def test_a_name_that_resolves_to_a_private_address_is_refused_before_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POLYNYA_LOCAL_APIS")

    def resolved(host: str, port: int | None, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", port))]

    def connected(*_: Any) -> Any:
        raise AssertionError("nothing may be sent to that address")

    monkeypatch.setattr("polynya.store.http_client.socket.getaddrinfo", resolved)
    monkeypatch.setattr("urllib3.util.connection.create_connection", connected)
    assert "private address" in failure({"type": "webhook", "url": "https://hooks.example.com"})


def test_a_name_server_that_changes_its_answer_gains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POLYNYA_LOCAL_APIS")
    found, own = iter(["93.184.216.34", "127.0.0.1"]), socket.getaddrinfo

    def changing(host: str, port: int | None, *_: Any, **__: Any) -> Any:
        return own(next(found), port, type=socket.SOCK_STREAM)

    with local_api(taking) as api:
        monkeypatch.setattr("socket.getaddrinfo", changing)
        url = f"http://rebound.example.com:{api.server.server_address[1]}"
        text = failure({"type": "webhook", "url": url, "allow_unencrypted": True})

    assert "POLYNYA-NTF-005" in text and api.asked == []


@pytest.mark.parametrize(
    "address",
    ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "169.254.169.254",
     "fe80::1", "fd00:ec2::254", "127.0.0.1", "::1", "0.0.0.0", "224.0.0.1", "::ffff:10.0.0.1",
     "64:ff9b::a9fe:a9fe", "2002:0a00:0001::1", "240.0.0.1", "198.18.0.1"],
)  # fmt: skip
def test_addresses_inside_are_refused(address: str) -> None:
    assert why_refused((), address) is not None


def test_only_a_private_network_can_be_allowed() -> None:
    assert why_refused((), "93.184.216.34") is None
    assert why_refused((), "2606:2800:220:1::1") is None
    assert why_refused(("10.1.0.0/16",), "10.1.2.3") is None
    assert why_refused(("10.1.0.0/16",), "10.2.2.3") is not None
    assert why_refused(("0.0.0.0/0", "::/0"), "169.254.169.254") is not None
    assert why_refused(("0.0.0.0/0", "::/0"), "127.0.0.1") is not None


def test_a_topic_of_sns_gets_subject_and_text() -> None:
    with aws_server() as endpoint:
        topic = client("sns", endpoint).create_topic(Name="ops")["TopicArn"]
        queue = client("sqs", endpoint).create_queue(QueueName="seen")["QueueUrl"]
        arn = f"arn:aws:sqs:{REGION}:123456789012:seen"
        client("sns", endpoint).subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        access = AwsAccess(region="eu-west-9", endpoint=endpoint)

        send({"type": "sns", "topic": topic}, a_message("crm.Zürich"), access=access)

        [got] = client("sqs", endpoint).receive_message(QueueUrl=queue)["Messages"]
        body = json.loads(got["Body"])
        missing = topic.replace(":ops", ":gone")
        assert "POLYNYA-AWS" in failure({"type": "sns", "topic": missing}, access=access)

    assert body["Subject"] == "[polynya shop] crm.Z?rich: the table is gone"
    assert "error: crm.Zürich" in body["Message"]


def test_apprise_reaches_its_services_without_mentions() -> None:
    with local_api(taking) as api:
        url = api.url.replace("http://", "json://")
        send({"type": "apprise", "url": url}, a_message(HOSTILE))

    [asked] = api.asked
    body = json.loads(asked.body)
    assert body["title"].startswith("[polynya shop]".replace("[", "(").replace("]", ")"))
    assert not set("<>@") & set(body["message"] + body["title"])
    assert body["type"] == "failure"


def test_apprise_that_fails_or_is_not_installed_is_told_without_its_url(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refusing(asked: Asked) -> Any:
        return Reply({}, status=500)

    with local_api(refusing) as api:
        url = api.url.replace("http://", f"json://user:{SECRET}@")
        texts = [failure({"type": "apprise", "url": url})]
    texts.append(failure({"type": "apprise", "url": f"nothing://{SECRET}"}))
    monkeypatch.setitem(sys.modules, "apprise", None)
    texts.append(failure({"type": "apprise", "url": f"json://{SECRET}"}))

    assert [text.split()[0] for text in texts] == ["POLYNYA-NTF-004"] * 2 + ["POLYNYA-NTF-003"]
    assert SECRET not in "".join(texts) + caplog.text


def test_old_times_tell_a_receiver_of_a_repeated_message() -> None:
    with local_api(taking) as api:
        settings: Any = TypeAdapter(Channel).validate_python(webhook(api, secret=SECRET))
        for at in (NOW, NOW + timedelta(minutes=1)):
            sender("oncall.ops", settings, AwsAccess())(a_message(), at)

    first, second = (asked.headers["Polynya-Signature"] for asked in api.asked)
    assert first != second
