"""Channels: how a message reaches people and programs.

`send` knows the four types. Secrets are read when a message is sent, stand in no error, and are
kept by nothing here.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import smtplib
import ssl
from collections.abc import Callable
from datetime import datetime
from email.message import EmailMessage
from functools import partial
from typing import Final

from pydantic import SecretStr

from polynya.model.config.aws import AwsAccess
from polynya.model.config.notification import (
    AppriseChannel,
    Channel,
    MailChannel,
    SnsChannel,
    WebhookChannel,
)
from polynya.model.error_catalogue.notifications import (
    APPRISE_MISSING,
    NOTIFICATION_NOT_SENT,
    NOTIFICATION_REFUSED_ADDRESS,
)
from polynya.notify.message import NotificationMessage
from polynya.store.http_client import (
    AnswerTooLargeError,
    ForbiddenAddressError,
    HttpClient,
    NoAnswerError,
    why_local,
)
from polynya.store.signature import SIGNATURE, signature_of
from polynya.store.vault import vault

#: An answer of a webhook is not used.
_ANSWER_BYTES: Final = 64 * 1024
#: Addresses of IPv4 behind a translator (RFC 6052).
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
DELIVERY: Final = "Polynya-Delivery"

#: Sends a message; raises PolynyaError.
Send = Callable[[NotificationMessage, datetime], None]


def sender(name: str, channel: Channel, access: AwsAccess) -> Send:
    """What sends through a channel; `name` is `FILE.CHANNEL`, for errors.

    The sender raises DependencyError when a message was not taken (POLYNYA-NTF-004), when Apprise
    is not installed (POLYNYA-NTF-003) or a secret cannot be read; OperationError when the address
    is refused (POLYNYA-NTF-005).
    """
    match channel:
        case MailChannel():
            return partial(_send_mail, name, channel)
        case WebhookChannel():
            return partial(_send_webhook, name, channel)
        case SnsChannel():
            return partial(_send_sns, channel, access)
        case AppriseChannel():
            return partial(_send_apprise, name, channel)


def _opened(secret: SecretStr) -> str:
    return vault().open(secret.get_secret_value()).text


# Mail.


def mail_of(channel: MailChannel, message: NotificationMessage, now: datetime) -> EmailMessage:
    """The mail of a message: plain text, and a note that a program wrote it (RFC 3834)."""
    mail = EmailMessage()
    mail["Subject"] = message.subject
    mail["From"] = channel.sender
    mail["To"] = ", ".join(channel.to)
    mail["Date"] = now
    mail["Message-ID"] = f"<{message.id}@{channel.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text + "\n")
    return mail


def _send_mail(
    name: str, channel: MailChannel, message: NotificationMessage, now: datetime
) -> None:
    mail = mail_of(channel, message, now)
    try:
        with _connected(name, channel) as server:
            if channel.user is not None and channel.password is not None:
                server.login(_opened(channel.user), _opened(channel.password))
            refused = server.send_message(mail)
    except smtplib.SMTPResponseException as error:
        # The text of the answer may quote what was sent.
        raise NOTIFICATION_NOT_SENT(
            why=f"the server answered {error.smtp_code}", channel=name
        ) from None
    except smtplib.SMTPRecipientsRefused:
        raise NOTIFICATION_NOT_SENT(why="the server refused all recipients", channel=name) from None
    except smtplib.SMTPException as error:
        raise NOTIFICATION_NOT_SENT(why=type(error).__name__, channel=name) from None
    except OSError as error:
        raise NOTIFICATION_NOT_SENT(why=_of_machine(error), channel=name) from None
    if refused:
        # The others have it: sending it again would repeat it for them.
        logging.getLogger(__name__).warning(
            "%s: the server refused %d of %d recipients", name, len(refused), len(channel.to)
        )


def _connected(name: str, channel: MailChannel) -> smtplib.SMTP:
    """A session with the server, over TLS as the settings ask; raises OSError, SMTPException."""
    context, timeout = ssl.create_default_context(), channel.timeout.total_seconds()
    if channel.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            channel.host, channel.port, timeout=timeout, context=context
        )
    else:
        server = smtplib.SMTP(channel.host, channel.port, timeout=timeout)
    try:
        assert server.sock is not None, "a session is connected"
        _refuse_link_local(name, str(server.sock.getpeername()[0]))
        if channel.tls == "starttls":
            # Without TLS the server raises SMTPNotSupportedError, and nothing goes in the clear.
            server.starttls(context=context)
    except BaseException:
        server.close()
        raise
    return server


def _refuse_link_local(name: str, peer: str) -> None:
    """Raise OperationError for a server that is no mail server of this machine or another one."""
    found = ipaddress.ip_address(peer.partition("%")[0])
    why = None if found.is_loopback else why_local(peer)
    if why is not None:
        raise NOTIFICATION_REFUSED_ADDRESS(why=why, channel=name)


def _of_machine(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    return error.strerror or type(error).__name__


# Webhooks.


def _send_webhook(
    name: str, channel: WebhookChannel, message: NotificationMessage, now: datetime
) -> None:
    body = json.dumps(message.body, ensure_ascii=True).encode()
    headers = {"Content-Type": "application/json", DELIVERY: message.id}
    if channel.secret is not None:
        headers[SIGNATURE] = signature_of(_opened(channel.secret), now, body)
    if channel.token is not None:
        headers["Authorization"] = f"Bearer {_opened(channel.token)}"
    client = HttpClient(
        timeout=channel.timeout.total_seconds(),
        max_bytes=_ANSWER_BYTES,
        refused=partial(why_refused, channel.allowed_networks),
    )
    try:
        answer = client.send("POST", channel.url, headers, body=body)
    except ForbiddenAddressError as error:
        raise NOTIFICATION_REFUSED_ADDRESS(why=str(error), channel=name) from None
    except NoAnswerError as error:
        raise NOTIFICATION_NOT_SENT(why=str(error), channel=name) from None
    except AnswerTooLargeError:
        # It was taken, and nobody reads the answer.
        return
    if not 200 <= answer.status < 300:
        raise NOTIFICATION_NOT_SENT(why=f"the server answered {answer.status}", channel=name)


def why_refused(allowed_networks: tuple[str, ...], address: str) -> str | None:
    """Why a webhook may not go to an IP address; None when it may."""
    why = why_local(address)
    if why is not None:
        return why
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and (inner := _embedded(found)) is not None:
        return why_refused(allowed_networks, str(inner))
    if found.is_global and not found.is_reserved:
        return None
    for text in allowed_networks:
        network = ipaddress.ip_network(text)
        if found.version == network.version and found in network:
            return None
    return "it is a private address, and no network of `allowed_networks` holds it"


def _embedded(found: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a gateway makes of an IPv6 one; None for others."""
    if found in _NAT64:
        return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]


# SNS.


def _send_sns(
    channel: SnsChannel, access: AwsAccess, message: NotificationMessage, now: datetime
) -> None:
    del now
    # Start-up time: the AWS SDK.
    from polynya.store.aws.sns import publish

    publish(access, channel.topic, subject=message.subject, text=message.text, id_=message.id)


# Apprise.

#: Characters that chats take for mentions and links.
_OBEYED: Final = str.maketrans({"<": "(", ">": ")", "@": "(at)", "[": "(", "]": ")", "`": "'"})


def _send_apprise(
    name: str, channel: AppriseChannel, message: NotificationMessage, now: datetime
) -> None:
    del now
    try:
        # Start-up time, and an extra.
        import apprise
    except ImportError:
        raise APPRISE_MISSING(where=name) from None
    # It writes addresses, in which tokens stand.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    kinds = {"warning": "warning", "error": "failure", "critical": "failure"}
    service = apprise.Apprise()
    if not service.add(_opened(channel.url)):
        raise NOTIFICATION_NOT_SENT(why="Apprise does not know this kind of URL", channel=name)
    sent = service.notify(
        title=message.subject.translate(_OBEYED),
        body=message.text.translate(_OBEYED),
        notify_type="success" if message.is_over else kinds[message.severity],
        body_format="text",
    )
    if not sent:
        raise NOTIFICATION_NOT_SENT(why="the service did not take it", channel=name)
