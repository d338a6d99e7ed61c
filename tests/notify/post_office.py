"""A mail server on this machine: what it got, over which session, and what it refuses."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from pathlib import Path


@dataclass
class PostOffice:
    """Speaks as much of SMTP as a client needs (RFC 5321, RFC 3207, RFC 4954)."""

    certificate: Path | None = None
    refuses: str = ""
    mails: list[Message] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0

    def serve(self, handler: socketserver.StreamRequestHandler) -> None:
        reader, writer = handler.rfile, handler.wfile
        secure = False

        def say(text: str) -> None:
            writer.write(f"{text}\r\n".encode())
            writer.flush()

        say("220 local ESMTP")
        while line := reader.readline():
            verb = line.split()[0].upper().decode() if line.split() else ""
            self.commands.append(verb)
            if verb and verb == self.refuses:
                say("550 5.7.1 the body says s3cr3t")
            elif verb == "EHLO":
                offers = [] if secure or self.certificate is None else ["STARTTLS"]
                lines = ["local", *offers, "AUTH PLAIN"]
                for one in lines[:-1]:
                    say(f"250-{one}")
                say(f"250 {lines[-1]}")
            elif verb == "STARTTLS" and self.certificate is not None:
                say("220 go on")
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.certificate)
                try:
                    wrapped = context.wrap_socket(handler.connection, server_side=True)
                except (ssl.SSLError, OSError):
                    return
                reader, writer, secure = wrapped.makefile("rb"), wrapped.makefile("wb"), True
            elif verb == "AUTH":
                say("235 welcome")
            elif verb == "DATA":
                say("354 go on")
                lines = []
                while (part := reader.readline()) not in (b".\r\n", b""):
                    lines.append(part.removeprefix(b".") if part.startswith(b"..") else part)
                self.mails.append(message_from_bytes(b"".join(lines), policy=default))
                self.encrypted.append(secure)
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("250 fine")


@contextmanager
def post_office(certificate: Path | None = None, refuses: str = "") -> Iterator[PostOffice]:
    """Serve until the block ends."""
    office = PostOffice(certificate, refuses)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            office.serve(self)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        office.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            yield office
        finally:
            server.shutdown()
            thread.join()
