"""What went wrong with a cluster of Kafka, by the classes of its client's exceptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from polynya.lake.spark.api import Py4JJavaError
from polynya.model.error_catalogue.stream_sources import (
    BROKER_HOST_MISMATCH,
    BROKER_UNTRUSTED,
    BROKERS_UNREACHABLE,
    KAFKA_FILES_UNUSABLE,
    KAFKA_LOGIN_REFUSED,
    KAFKA_READ_DENIED,
    KAFKA_REQUEST_FAILED,
    KAFKA_SETTINGS_INVALID,
    RECORDS_DELETED_MEANWHILE,
)
from polynya.model.errors import PolynyaError

#: A Java exception as its class and its message, from the outermost to its last cause.
Chain = Sequence[tuple[str, str]]

_KAFKA: Final = "org.apache.kafka."
_CAUSE_CHARACTERS: Final = 400
_UNREACHABLE: Final = frozenset(
    {"TimeoutException", "DisconnectException", "NetworkException", "BrokerNotAvailableException",
     "CoordinatorNotAvailableException", "LeaderNotAvailableException", "NotControllerException"}
)  # fmt: skip
#: What the chain that ends at no authority is called, and a certificate out of its time.
_UNTRUSTED: Final = ("CertPath", "ValidatorException", "CertificateExpired", "CertificateNotYet")
#: What a certificate for another host is said to lack.
_OTHER_HOST: Final = ("No subject alternative", "No name matching")
#: How the client begins what it says of a file with certificates or keys that it cannot use.
_STORES: Final = ("SSL keystore", "PEM keystore configs", "PEM truststore configs")
#: How it begins what it says of settings, before it asks any broker.
_NOT_MADE: Final = ("Failed to create new", "Failed to construct")
#: Records went between the look at a topic and its reading.
_DELETED: Final = "OffsetOutOfRangeException"


def chain_of(error: BaseException) -> Chain:
    """The Java exceptions behind one of Python."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else None
    found: list[tuple[str, str]] = []
    while java is not None and len(found) < 20:
        found.append((str(java.getClass().getName()), str(java.getMessage())))
        java = java.getCause()
    return found


def has(chain: Chain, name: str) -> bool:
    """Whether an exception is of a class, or caused by one."""
    return any(_simple(kind) == name for kind, _ in chain)


def explained(chain: Chain, where: str, secrets: Iterable[str] = ()) -> PolynyaError | None:
    """The error to show for exceptions of Kafka's client; None when they are of something else.

    Args:
        chain: the exceptions.
        where: task and brokers.
        secrets: what the error leaves out, should the client repeat it.
    """
    for secret in secrets:
        chain = [(kind, message.replace(secret, "***")) for kind, message in chain]
    if not any(kind.startswith(_KAFKA) for kind, _ in chain):
        return None
    return _named(chain, where)


def _named(chain: Chain, where: str) -> PolynyaError:
    names = [_simple(kind) for kind, _ in chain]
    why = _cause(chain)
    if _DELETED in names:
        return RECORDS_DELETED_MEANWHILE(where=where, why=why)
    if any("Authorization" in name for name in names):
        return KAFKA_READ_DENIED(where=where, why=why)
    refused = _of_certificates(chain, names, where)
    if refused is not None:
        return refused
    if any(part in name for name in names for part in ("Authentication", "SslException", "Sasl")):
        return KAFKA_LOGIN_REFUSED(where=where, why=why)
    if any("ConfigException" in name for name in names) or _says(chain, _NOT_MADE):
        return KAFKA_SETTINGS_INVALID(where=where, why=why)
    if any(name in _UNREACHABLE for name in names):
        return BROKERS_UNREACHABLE(where=where, why=why)
    return KAFKA_REQUEST_FAILED(where=where, why=why, exception=names[-1])


def _of_certificates(chain: Chain, names: Sequence[str], where: str) -> PolynyaError | None:
    """The error for certificates that we do not take; None when it is about something else."""
    why = _cause(chain)
    if _says(chain, _OTHER_HOST):
        return BROKER_HOST_MISMATCH(where=where, why=why)
    if any(part in name for name in names for part in _UNTRUSTED):
        return BROKER_UNTRUSTED(where=where, why=why)
    store = _says(chain, _STORES)
    if store:
        cause = why if store in why else f"{store}; {why}"
        return KAFKA_FILES_UNUSABLE(where=where, why=cause[:_CAUSE_CHARACTERS])
    return None


def _says(chain: Chain, words: Iterable[str]) -> str | None:
    """The first message with one of some words."""
    found = (message for _, message in chain if any(word in message for word in words))
    return next(found, None)


def _cause(chain: Chain) -> str:
    kind, message = chain[-1]
    return f"{_simple(kind)}: {' '.join(message.split())}"[:_CAUSE_CHARACTERS]


def _simple(kind: str) -> str:
    return kind.rpartition(".")[2].rpartition("$")[2]
