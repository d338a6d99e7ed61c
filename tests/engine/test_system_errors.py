"""What the system says of files, disks and connections is told as such, also without Spark."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from pathlib import Path

import pytest

from polynya.engine.errors import as_polynya
from polynya.model.errors import DependencyError, InternalError
from polynya.store.object_store import LocalObjectStore


def of_system(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/lake/a.json")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (of_system(errno.ENOSPC), "POLYNYA-DEP-011"),
        (of_system(errno.EDQUOT), "POLYNYA-DEP-011"),
        (of_system(errno.EACCES), "POLYNYA-DEP-010"),
        (of_system(errno.EROFS), "POLYNYA-DEP-010"),
        (of_system(errno.ENOENT), "POLYNYA-STO-004"),
        (of_system(errno.EISDIR), "POLYNYA-STO-004"),
        (of_system(errno.ENOTDIR), "POLYNYA-STO-004"),
        (of_system(errno.EMFILE), "POLYNYA-DEP-021"),
        (of_system(errno.EIO), "POLYNYA-DEP-021"),
        (of_system(errno.ENOMEM), "POLYNYA-DEP-021"),
        (of_system(errno.ECONNREFUSED), "POLYNYA-DEP-022"),
        (of_system(errno.EHOSTUNREACH), "POLYNYA-DEP-022"),
    ],
)
def test_an_error_of_the_system_has_a_code_its_place_and_a_fix(error: OSError, code: str) -> None:
    found = as_polynya(error)

    assert isinstance(found, DependencyError)
    assert (found.code, found.where) == (code, "/lake/a.json")
    assert error.strerror in f"{found.message} {found.why}"
    assert found.fix
    assert found.state
    assert found.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ssl.SSLCertVerificationError(1, "certificate verify failed"),
        TimeoutError("timed out"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    ],
)
def test_a_connection_that_fails_is_told_as_one(error: OSError) -> None:
    found = as_polynya(error)

    assert found.code == "POLYNYA-DEP-022"
    assert str(error.args[-1]) in found.message


def test_an_object_that_a_store_no_longer_has_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(FileNotFoundError) as raised:
        LocalObjectStore(tmp_path / "here").get("gone.json")

    found = as_polynya(raised.value)
    assert found.code == "POLYNYA-STO-004"
    assert "gone.json" in f"{found.where} {found.message}"


@pytest.mark.parametrize("error", [ValueError("No such file or directory"), OSError("a library")])
def test_any_other_error_stays_a_bug(error: Exception) -> None:
    assert isinstance(as_polynya(error), InternalError)
