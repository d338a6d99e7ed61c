"""Functions that hash, encode and take apart addresses."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.model.contract.identifiers import literal
from polynya.model.datatypes import BINARY, STRING
from polynya.transform.functions.base import Build, Place, Value, function, let, null
from polynya.transform.functions.coerce import text
from polynya.transform.functions.structs import names_of, record

_URL = (
    r"^(?:([A-Za-z][A-Za-z0-9+.-]*)://)?(?s)((?:([^/?#@]*)@)?([^/?#:@]*)(?::([0-9]*))?)"
    r"([^?#]*)(?:\?([^#]*))?(?:#(.*))?$"
)
_PARTS = ("scheme", "authority", "user_info", "host", "port", "path", "query", "fragment")


def _hash(called: str, *more: str) -> Build:
    def build(values: Sequence[Value], _: Place) -> Value:
        given = values[0] if values[0].kind == BINARY else text(values[0])
        return Value(f"{called}({', '.join([given.sql, *more])})", STRING)

    return build


def _base64(values: Sequence[Value], _: Place) -> Value:
    raw = f"try_to_binary({text(values[0]).sql}, 'base64')"
    return Value(f"try_validate_utf8(CAST({raw} AS STRING))", STRING)


def _decode(values: Sequence[Value], _: Place) -> Value:
    return Value(f"try_url_decode({text(values[0]).sql})", STRING)


def _encode(values: Sequence[Value], _: Place) -> Value:
    return Value(f"url_encode({text(values[0]).sql})", STRING)


def _url(values: Sequence[Value], _: Place) -> Value:
    def taken(x: Value) -> str:
        found = [
            f"nullif(regexp_extract({x.sql}, {literal(_URL)}, {group}), '')"
            for group in range(1, 9)
        ]
        named = dict(zip(_PARTS, (Value(one, STRING) for one in found), strict=True))
        return f"IF({x.sql} RLIKE {literal(_URL)}, {record(named).sql}, NULL)"

    return Value(let("x", text(values[0]), taken), record(_FIELDS).kind)


def _query_string(values: Sequence[Value], _: Place) -> Value:
    names = names_of(values[1])

    def taken(x: Value) -> str:
        fields = {}
        for name in names:
            exact = "".join(one if one.isalnum() or ord(one) > 127 else f"\\{one}" for one in name)
            pattern = literal(f"(?:^|[?&]){exact}=([^&#]*)")
            first = f"get(regexp_extract_all({x.sql}, {pattern}, 1), 0)"
            fields[name] = Value(f"try_url_decode({first})", STRING)
        return f"IF({x.sql} IS NULL, NULL, {record(fields).sql})"

    return Value(let("x", text(values[0]), taken), record({name: null() for name in names}).kind)


_FIELDS = {name: null() for name in _PARTS}

FUNCTIONS = (
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
        "base64_decode", "text", _base64,
        "The text that Base64 stands for, with or without `=` at its end; NULL where it is not "
        "valid, or not a text in UTF-8.",
        "base64_decode('SGVsbG8gV29ybGQ=') -> \"Hello World\"",
        "base64_decode('SGVsbG8gV29ybGQ') -> \"Hello World\"",
        "base64_decode('###') -> null",
    ),
    function(
        "url_decode", "text", _decode, "The text that was encoded for an address; NULL if wrong.",
        "url_decode('The+quick+fox+%235') -> \"The quick fox #5\"", "url_decode('%zz') -> null",
    ),
    function(
        "url_encode", "text", _encode, "A text encoded for an address.",
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
