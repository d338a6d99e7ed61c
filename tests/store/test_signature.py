"""Signatures of webhooks: what is genuine, and everything else that is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.store.signature import ReceivedSignature, is_signed, received, signature_of

NOW = datetime(2026, 11, 29, 8, 0, 0, tzinfo=UTC)
KEY = "0123456789abcdef"


def is_genuine(header: str | None, body: bytes, now: datetime = NOW, key: str = KEY) -> bool:
    found = received(header, now)
    return isinstance(found, ReceivedSignature) and is_signed(key, found, body)


@given(st.binary(max_size=200), st.integers(-300, 300))
def test_what_was_signed_with_the_secret_is_genuine_for_five_minutes(body: bytes, apart: int):
    header = signature_of(KEY, NOW + timedelta(seconds=apart), body)

    assert is_genuine(header, body)
    assert not is_genuine(header, body, key=KEY + "0")
    assert not is_genuine(header, body + b"x")


@pytest.mark.parametrize("apart", [-301, 301, 86_400, -86_400])
def test_a_clock_that_is_more_than_five_minutes_away_is_refused(apart: int):
    found = received(signature_of(KEY, NOW + timedelta(seconds=apart), b""), NOW)

    assert isinstance(found, str)
    assert f"{abs(apart)} s away" in found


GOOD = signature_of(KEY, NOW, b"{}")
SECONDS, HEX = GOOD[2:12], GOOD[16:]


@pytest.mark.parametrize(
    "header",
    [
        None, "", "t=", f"t={SECONDS}", f"v1={HEX}", f"v1={HEX},t={SECONDS}", f"{GOOD} ",
        f" {GOOD}", f"{GOOD},v1={HEX}", f"t={SECONDS},v1={HEX.upper()}", GOOD[:-1],
        f"t=+{SECONDS},v1={HEX}", f"t={SECONDS}.0,v1={HEX}", f"t=-{SECONDS},v1={HEX}",
        f"t={SECONDS},v0={HEX}", f"t={SECONDS},v1={HEX}\n", "t=9" + "9" * 400 + f",v1={HEX}",
        f"t={chr(0xFF11) * 10},v1={HEX}", f"t={SECONDS},v1={chr(0x660) * 64}", "\0", GOOD + "\0",
    ],
)  # fmt: skip
def test_a_header_of_another_form_is_refused(header: str | None):
    assert is_genuine(GOOD, b"{}")
    assert not is_genuine(header, b"{}")


@given(st.text(max_size=120))
def test_no_text_is_genuine_or_an_error(header: str):
    assert not is_genuine(header, b"{}")


def test_a_time_cannot_be_moved_into_the_body():
    """`SECONDS.BODY` is one text: what stands before the first dot is the time."""
    header = signature_of(KEY, NOW, b"1.{}")

    assert not is_genuine(header.replace(SECONDS, f"{SECONDS}.1"), b"{}")
