"""The login of a Kafka client, `sasl.jaas.config`: read into fields and written from them.

The client loads the class that the text names and hands it the options. So the text itself never
reaches the client: only a known module with known options does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from polynya.model.contract.identifiers import shown

_KAFKA: Final = "org.apache.kafka.common.security"
_KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"
KEY_TAB: Final = "keyTab"
#: The modules that may be named, and the options that each of them takes.
MODULES: Final[Mapping[str, frozenset[str]]] = {
    f"{_KAFKA}.plain.PlainLoginModule": frozenset({"username", "password"}),
    f"{_KAFKA}.scram.ScramLoginModule": frozenset({"username", "password", "tokenauth"}),
    f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule": frozenset(
        {"clientId", "clientSecret", "scope"}
    ),
    _KERBEROS: frozenset(
        {
            "doNotPrompt",
            KEY_TAB,
            "principal",
            "refreshKrb5Config",
            "renewTGT",
            "serviceName",
            "storeKey",
            "useKeyTab",
        }
    ),
    "software.amazon.msk.auth.iam.IAMLoginModule": frozenset(
        {
            "awsMaxRetries",
            "awsProfileName",
            "awsRoleArn",
            "awsRoleSessionName",
            "awsStsRegion",
        }
    ),
}
_EXTENSION: Final = re.compile(r"extension_[A-Za-z]+")
_TOKEN: Final = re.compile(
    r"""\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([^\s"';=]+)|([=;]))""", re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_QUOTED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Login:
    """A login module and its options; the values may hold references."""

    module: str
    options: tuple[tuple[str, str], ...]

    @property
    def key_tab(self) -> str | None:
        """The file of keys that the module opens."""
        return dict(self.options).get(KEY_TAB)

    def text(self) -> str:
        """As the client reads it: each value in double quotes."""
        words = [self.module, "required"]
        for name, value in self.options:
            words.append(f'{name}="{"".join(_QUOTED.get(one, one) for one in value)}"')
        return " ".join(words) + ";"


def jaas_problem(text: str) -> str | None:
    """What is wrong with a login, in words that hold no option; None when nothing is."""
    try:
        login(text)
    except ValueError as error:
        return str(error)
    return None


def login(text: str) -> Login:
    """Read a login.

    Raises:
        ValueError: it is more or less than one entry, or names an unknown module or option. The
            message repeats no value.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError("`sasl.jaas.config` is not `MODULE required NAME=VALUE …;`")
    (_, module), (_, flag), *rest = tokens[:-1]
    if module not in MODULES:
        known = ", ".join(sorted(one.rpartition(".")[2] for one in MODULES))
        raise ValueError(f"{shown(module)} is not a login module that is known: {known}")
    if flag != "required":
        raise ValueError("the login module of `sasl.jaas.config` has to be `required`")
    if len(rest) % 3:
        raise ValueError("an option of `sasl.jaas.config` is not `NAME=VALUE`")
    options: dict[str, str] = {}
    for (kind, name), equals, (valued, value) in zip(
        rest[::3], rest[1::3], rest[2::3], strict=True
    ):
        if kind != "word" or equals != ("sign", "=") or valued == "sign":
            raise ValueError("an option of `sasl.jaas.config` is not `NAME=VALUE`")
        if name not in MODULES[module] and not _extends(module, name):
            raise ValueError(f"the login module has no option {shown(name)} that a task may set")
        if name in options:
            raise ValueError(f"`sasl.jaas.config` has the option {shown(name)} twice")
        options[name] = value
    return Login(module, tuple(options.items()))


def _extends(module: str, option: str) -> bool:
    return "oauthbearer" in module and _EXTENSION.fullmatch(option) is not None


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("`sasl.jaas.config` has a quote without its end")
        double, single, word, sign = match.groups()
        if sign is not None:
            found.append(("sign", sign))
        elif word is not None:
            found.append(("word", word))
        else:
            quoted = double if double is not None else single
            found.append(("text", _ESCAPED.sub(_unescaped, quoted)))
        position = match.end()
    return found


def _unescaped(found: re.Match[str]) -> str:
    return _CONTROLS.get(found[1], found[1])
