"""Values as a server sends them in text, into the JSON that Debezium writes of them.

Each takes a value that is not NULL. What Debezium cannot give exactly, it gives as Debezium does,
so that a row is the same whether it was loaded or streamed.
"""

from __future__ import annotations

import ipaddress
import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, timedelta
from json.encoder import encode_basestring
from typing import Final, TypeAlias

Encoder: TypeAlias = Callable[[bytes], bytes]

NULL: Final = b"null"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the wall clock, as the type has it
_EPOCH_DAY: Final = _EPOCH.toordinal()
_MICRO: Final = timedelta(microseconds=1)
_NO_REFERENCE: Final = 0
#: Byte order of a point, its type, then its coordinates.
_POINT: Final = {1: struct.Struct("<dd"), 0: struct.Struct(">dd")}


def whole(value: bytes) -> bytes:
    """A whole number; zeros before it are not of JSON."""
    return value if value[:1] != b"0" else str(int(value)).encode()


def decimal(value: bytes) -> bytes:
    """The digits as one number, big-endian in two's complement, as few bytes as it takes."""
    number = int(value.replace(b".", b""))
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b'"' + b64encode(number.to_bytes(length, "big", signed=True)) + b'"'


def double(value: bytes) -> bytes:
    """A number of 64 bits."""
    return repr(float(value)).encode()


def single(value: bytes) -> bytes:
    """A number of 32 bits, in the fewest digits that say which."""
    number = float(value)
    wanted = struct.pack("f", number)
    for digits in range(6, 9):
        text = f"{number:.{digits}g}"
        # One that is near the largest may be beyond it in fewer digits.
        if abs(float(text)) <= abs(number) * 1.001 and _packed(float(text)) == wanted:
            return repr(float(text)).encode()
    return repr(float(f"{number:.9g}")).encode()


def _packed(number: float) -> bytes | None:
    try:
        return struct.pack("f", number)
    except OverflowError:
        return None


def text(value: bytes) -> bytes:
    """Text."""
    return encode_basestring(value.decode("utf-8", "replace")).encode()


def label(value: bytes) -> bytes:
    """A label of an ENUM: Debezium writes a backslash before its commas."""
    return text(value.replace(b",", b"\\,"))


def binary(value: bytes) -> bytes:
    """Bytes as base64."""
    return b'"' + b64encode(value) + b'"'


def uuid(value: bytes) -> bytes:
    """The 16 bytes of a UUID."""
    return binary(bytes.fromhex(value.replace(b"-", b"").decode("ascii")))


def address(value: bytes) -> bytes:
    """The bytes of an address of the Internet Protocol."""
    return binary(ipaddress.ip_address(value.decode("ascii")).packed)


def flag(value: bytes) -> bytes:
    """BIT(1), which comes as a byte."""
    return b"true" if value != b"\0" else b"false"


def bits(value: bytes) -> bytes:
    """BIT(n), the last byte first."""
    return binary(value[::-1])


def year(value: bytes) -> bytes:
    """A year; of 0000 the log of changes says 1900."""
    return b"1900" if value == b"0000" else value


def days(empty: bytes) -> Encoder:
    """Days since 1970; `empty` for a date that no calendar has, such as 2024-00-00."""

    def encode(value: bytes) -> bytes:
        try:
            found = date.fromisoformat(value.decode("ascii"))
        except ValueError:
            return empty
        return str(found.toordinal() - _EPOCH_DAY).encode()

    return encode


def wall_clock(unit_micros: int, empty: bytes) -> Encoder:
    """A DATETIME in units since 1970; `empty` as for days."""

    def encode(value: bytes) -> bytes:
        try:
            found = datetime.fromisoformat(value.decode("ascii"))
        except ValueError:
            return empty
        return str((found - _EPOCH) // _MICRO // unit_micros).encode()

    return encode


def instant(value: bytes) -> bytes:
    """A TIMESTAMP, which the session gives in UTC; that of no calendar is the beginning of 1970."""
    if value.startswith(b"0000"):
        value = b"1970-01-01" + value[10:]
    return b'"' + value.replace(b" ", b"T") + b'Z"'


def duration(value: bytes) -> bytes:
    """A TIME in microseconds, also a negative one."""
    sign, value = (-1, value[1:]) if value[:1] == b"-" else (1, value)
    clock, _, fraction = value.partition(b".")
    hours, minutes, seconds = (int(part) for part in clock.split(b":"))
    micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(fraction.ljust(6, b"0"))
    return str(sign * micros).encode()


def geometry(value: bytes) -> bytes:
    """Well-known bytes and the number of the reference system, which stands before them."""
    return b'{"wkb":' + binary(value[4:]) + b',"srid":' + _reference(value) + b"}"


def point(value: bytes) -> bytes:
    """A point: its coordinates beside the same."""
    order = _POINT[value[4]]
    x, y = order.unpack_from(value, 9)
    place = f'{{"x":{x!r},"y":{y!r},"wkb":'.encode()
    return place + binary(value[4:]) + b',"srid":' + _reference(value) + b"}"


def _reference(value: bytes) -> bytes:
    number = int.from_bytes(value[:4], "little")
    return NULL if number == _NO_REFERENCE else str(number).encode()
