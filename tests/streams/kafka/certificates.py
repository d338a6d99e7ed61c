"""Certificates made for one test: an authority, what it signs, and a key with a password. PEM."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.absent import absent

_CURVE = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
_RSA = ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")


@dataclass(frozen=True)
class Authority:
    """Signs certificates; `certificate` is the file by which others trust it."""

    folder: Path
    name: str

    @classmethod
    def of(cls, folder: Path, name: str) -> Authority:
        """Make an authority whose files are in a folder."""
        if shutil.which("openssl") is None:
            absent("there is no openssl to make the certificates")
        made = cls(folder, name)
        _openssl("genpkey", *_CURVE, "-out", str(made._key))
        _openssl("req", "-x509", "-new", "-key", str(made._key), "-days", "2",
                 "-subj", f"/CN={name}", "-out", str(made.certificate))  # fmt: skip
        return made

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.name}.pem"

    @property
    def _key(self) -> Path:
        return self.folder / f"{self.name}.key"

    def signs(self, name: str, *, host: str | None = None, is_rsa: bool = False) -> Path:
        """A file with a key and its certificate, as `ssl.keystore.location` takes it.

        `host` is whom it is for, as `IP:127.0.0.1` or `DNS:broker`; old servers need RSA.
        """
        key, request, signed, whole = (
            self.folder / f"{name}.{end}" for end in ("key", "csr", "crt", "whole.pem")
        )
        _openssl("genpkey", *(_RSA if is_rsa else _CURVE), "-out", str(key))
        _openssl("req", "-new", "-key", str(key), "-subj", f"/CN={name}",
                 "-out", str(request))  # fmt: skip
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={host}\n" if host else "")
        _openssl("x509", "-req", "-in", str(request), "-CA", str(self.certificate),
                 "-CAkey", str(self._key), "-CAcreateserial", "-days", "2",
                 "-extfile", str(extensions), "-out", str(signed))  # fmt: skip
        whole.write_text(key.read_text() + signed.read_text())
        return whole

    def encrypted(self, whole: Path, password: str, *how: str) -> Path:
        """The same file with its key encrypted, as `openssl pkcs8` is told."""
        key = whole.with_name(whole.name + "".join(how) + ".key")
        _openssl("pkcs8", "-topk8", "-in", str(whole), *how, "-passout", f"pass:{password}",
                 "-out", str(key))  # fmt: skip
        certificate = whole.read_text().partition("-----BEGIN CERTIFICATE")
        locked = key.with_suffix(".pem")
        locked.write_text(key.read_text() + "".join(certificate[1:]))
        return locked


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
