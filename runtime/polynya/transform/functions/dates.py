"""Functions of dates and times; functions that hash, encode and parse addresses."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.model.headers import LANDED_AT
from polynya.model.names import literal
from polynya.model.types import BIGINT, BINARY, STRING, TIMESTAMP
from polynya.transform.functions.coerce import instant, long, text
from polynya.transform.functions.core import (
    Build,
    ExpressionContext,
    Value,
    function,
    let,
    names_of,
    null,
    record,
    template,
)

_SOME_TIME = "TIMESTAMP '2018-03-10 08:55:12.456Z'"


def _bounded(time: Value) -> str:
    """A time of the years 1 to 9999: beyond, moving a clock or counting seconds may overflow."""
    first, last = "TIMESTAMP '0001-01-03 00:00:00Z'", "TIMESTAMP '9999-12-29 00:00:00Z'"
    return let("t", time, lambda t: f"IF({t.sql} BETWEEN {first} AND {last}, {t.sql}, NULL)")


def _zone(value: Value) -> str:
    """A time zone, NULL where it is none: Spark's own cast tells, which knows the same zones."""

    def checked(zone: Value) -> str:
        there = f"TRY_CAST(concat('2000-01-01 00:00:00 ', {zone.sql}) AS TIMESTAMP) IS NOT NULL"
        return f"IF({zone.sql} RLIKE '^[+A-Za-z-][+A-Za-z0-9:/_-]*$' AND {there}, {zone.sql}, NULL)"

    return let("z", text(value), checked)


def _add_offset(values: Sequence[Value], _: ExpressionContext) -> Value:
    time, zone = _bounded(instant(values[0])), _zone(values[1])
    return Value(f"from_utc_timestamp({time}, {zone})", TIMESTAMP)


def _date_format(values: Sequence[Value], place: ExpressionContext) -> Value:
    pattern = literal(values[1].constant or "")
    if not place.works(f"date_format({_SOME_TIME}, {pattern})"):
        return null()
    return Value(f"date_format({_bounded(instant(values[0]))}, {pattern})", STRING)


def _parse_date(values: Sequence[Value], place: ExpressionContext) -> Value:
    pattern = literal(values[1].constant or "")
    if not place.works(f"try_to_timestamp('2018', {pattern})"):
        return null(TIMESTAMP)
    return Value(f"try_to_timestamp({text(values[0]).sql}, {pattern})", TIMESTAMP)


def _epoch_to_date(values: Sequence[Value], _: ExpressionContext) -> Value:
    def micros(epoch: Value) -> str:
        n = epoch.sql
        return (
            f"CASE WHEN {n} BETWEEN -99999999999 AND 99999999999 THEN {n} * 1000000 "
            f"WHEN {n} BETWEEN -99999999999999 AND 99999999999999 THEN {n} * 1000 "
            f"WHEN {n} BETWEEN -99999999999999999 AND 99999999999999999 THEN {n} "
            f"ELSE {n} div 1000 END"
        )

    return Value(f"timestamp_micros({let('n', long(values[0]), micros)})", TIMESTAMP)


DATE_FUNCTIONS = (
    function(
        "add_time_zone_offset", "time zone", _add_offset,
        """Moves the clock by the offset of a zone at that time; the result still counts as UTC.
        A zone that is unknown, or empty, gives NULL, and so does a time outside of the years 1 to
        9999.""",
        "add_time_zone_offset('2018-03-10T08:55:12Z', '+02:00') -> \"2018-03-10T10:55:12.000Z\"",
        "add_time_zone_offset('2018-03-10T08:55:12Z', 'America/New_York')"
        ' -> "2018-03-10T03:55:12.000Z"',
        "add_time_zone_offset('2018-03-10T08:55:12Z', 'Nowhere/Land') -> null",
        "add_time_zone_offset('2018-03-10T08:55:12Z', '') -> null",
    ),
    function(
        "date_format", "time 'pattern'", _date_format,
        """The text of a time by a pattern of Spark (as Java's `DateTimeFormatter`). A pattern that
        Spark refuses gives NULL.""",
        "polynya.date_format('2018-03-10T08:55:12.456Z', 'yyyy/MM/dd HH:mm:ss.SSS')"
        ' -> "2018/03/10 08:55:12.456"',
        "polynya.date_format('2018-03-10T08:55:12.456Z', 'E') -> \"Sat\"",
        "polynya.date_format('no time', 'E') -> null",
        "polynya.date_format('2018-03-10', 'bad pattern') -> null",
    ),
    function(
        "parse_date", "text 'pattern'", _parse_date,
        """The time that a text says by a pattern of Spark; without a time of day it is midnight.
        NULL where the text does not match.""",
        "parse_date('2017-09-25 22:11:00', 'yyyy-MM-dd HH:mm:ss') -> \"2017-09-25T22:11:00.000Z\"",
        "parse_date('2018_Mar_21', 'yyyy_MMM_dd') -> \"2018-03-21T00:00:00.000Z\"",
        "parse_date('25.9.2017', 'yyyy-MM-dd') -> null",
    ),
    function(
        "to_unix_epoch_millis", "time", template("unix_millis({})", BIGINT, instant),
        "Milliseconds since 1970.",
        "to_unix_epoch_millis('2018-03-10T08:55:12.456Z') -> 1520672112456",
    ),
    function(
        "to_unix_epoch_seconds", "time", template("unix_seconds({})", BIGINT, instant),
        "Whole seconds since 1970.",
        "to_unix_epoch_seconds('2018-03-10T08:55:12.456Z') -> 1520672112",
    ),
    function(
        "unix_epoch_to_date", "number", _epoch_to_date,
        """The time of a number of seconds, milliseconds, microseconds or nanoseconds since 1970;
        which of them follows from its size (below 10^11, 10^14, 10^17).""",
        'unix_epoch_to_date(1520672112) -> "2018-03-10T08:55:12.000Z"',
        'unix_epoch_to_date(1520672112456) -> "2018-03-10T08:55:12.456Z"',
        "unix_epoch_to_date('1520672112456000000') -> \"2018-03-10T08:55:12.456Z\"",
    ),
    function(
        "get_processing_time", "value?", None,
        """When the message was landed: the time of its landed batch, which stays the same when it
        is read again. For format `stream` only, and not with `direct: true`: other records that
        are read again would get another time.""",
        header=LANDED_AT,
    ),
)  # fmt: skip


_URL = (
    r"^(?:([A-Za-z][A-Za-z0-9+.-]*)://)?(?s)((?:([^/?#@]*)@)?([^/?#:@]*)(?::([0-9]*))?)"
    r"([^?#]*)(?:\?([^#]*))?(?:#(.*))?$"
)
_PARTS = ("scheme", "authority", "user_info", "host", "port", "path", "query", "fragment")


def _hash(called: str, *more: str) -> Build:
    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        given = values[0] if values[0].kind == BINARY else text(values[0])
        return Value(f"{called}({', '.join([given.sql, *more])})", STRING)

    return build


def _url(values: Sequence[Value], _: ExpressionContext) -> Value:
    def taken(x: Value) -> str:
        parts = [
            f"nullif(regexp_extract({x.sql}, {literal(_URL)}, {group}), '')"
            for group in range(1, 9)
        ]
        named = dict(zip(_PARTS, (Value(name, STRING) for name in parts), strict=True))
        return f"IF({x.sql} RLIKE {literal(_URL)}, {record(named).sql}, NULL)"

    return Value(let("x", text(values[0]), taken), record(_FIELDS).kind)


def _query_string(values: Sequence[Value], _: ExpressionContext) -> Value:
    names = names_of(values[1])

    def taken(x: Value) -> str:
        fields = {}
        for name in names:
            exact = "".join(
                letter if letter.isalnum() or ord(letter) > 127 else f"\\{letter}"
                for letter in name
            )
            pattern = literal(f"(?:^|[?&]){exact}=([^&#]*)")
            first = f"get(regexp_extract_all({x.sql}, {pattern}, 1), 0)"
            fields[name] = Value(f"try_url_decode({first})", STRING)
        return f"IF({x.sql} IS NULL, NULL, {record(fields).sql})"

    return Value(let("x", text(values[0]), taken), record({name: null() for name in names}).kind)


_FIELDS = {name: null() for name in _PARTS}

ENCODING_FUNCTIONS = (
    function(
        "md5", "value", _hash("md5"), "The MD5 of a text or of bytes, in hexadecimal.",
        "polynya.md5('hello world') -> \"5eb63bbbe01eeed093cb22bb8f5acdc3\"",
    ),
    function(
        "sha1", "value", _hash("sha1"), "The SHA-1 of a text or of bytes.",
        "polynya.sha1('hello world') -> \"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed\"",
    ),
    function(
        "sha256", "value", _hash("sha2", "256"), "The SHA-256 of a text or of bytes.",
        "sha256('Hello SHA')"
        ' -> "4ea3b17f15346417f4c9b2ff94a1bfe82de99fdb0bbd30dc4dca031ab920d5e4"',
    ),
    function(
        "base64_decode", "text",
        template(
            "try_validate_utf8(CAST(try_to_binary({}, 'base64') AS STRING))", STRING, text
        ),
        "The text that Base64 stands for, with or without `=` at its end; NULL where it is not "
        "valid, or not a text in UTF-8.",
        "base64_decode('SGVsbG8gV29ybGQ=') -> \"Hello World\"",
        "base64_decode('SGVsbG8gV29ybGQ') -> \"Hello World\"",
        "base64_decode('###') -> null",
    ),
    function(
        "url_decode", "text", template("try_url_decode({})", STRING, text),
        "The text that was encoded for an address; NULL if wrong.",
        "url_decode('The+quick+fox+%235') -> \"The quick fox #5\"", "url_decode('%zz') -> null",
    ),
    function(
        "url_encode", "text", template("url_encode({})", STRING, text),
        "A text encoded for an address.",
        "url_encode('Comment #5') -> \"Comment+%235\"",
    ),
    function(
        "url_parser", "text", _url,
        """A struct of the parts of an address: scheme, authority, user_info, host, port, path,
        query, fragment; what it lacks is NULL.""",
        "url_parser('https://www.domain.com/page.html') -> "
        '{"scheme":"https","authority":"www.domain.com","user_info":null,"host":"www.domain.com",'
        '"port":null,"path":"/page.html","query":null,"fragment":null}',
        "url_parser('user:pass@www.domain.com:80/p?q#f') -> "
        '{"scheme":null,"authority":"user:pass@www.domain.com:80","user_info":"user:pass",'
        '"host":"www.domain.com","port":"80","path":"/p","query":"q","fragment":"f"}',
    ),
    function(
        "query_string_to_record", "text 'names'", _query_string,
        """A struct of parameters of a query string, or of an address with one; their names are
        divided by commas. The first of several counts; one that is not there is NULL.""",
        "query_string_to_record('?a=1&b=x%20y', 'a,b,c') -> {\"a\":\"1\",\"b\":\"x y\",\"c\":null}",
    ),
)  # fmt: skip
