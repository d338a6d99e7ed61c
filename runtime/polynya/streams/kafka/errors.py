"""What went wrong with a cluster of Kafka, by the classes of its client's exceptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from polynya.lake.spark.api import CapturedException, Py4JJavaError
from polynya.model.errors import DependencyError, PolynyaError

#: A Java exception as its class and its message, from the outermost to its last cause.
Chain = Sequence[tuple[str, str]]

_KAFKA: Final = "org.apache.kafka."
_STATE: Final = "nothing was landed; the topics keep their records as long as they are set to"
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
#: Spark throws its own when records went between the look at a topic and its reading.
_DATA_LOSS: Final = ("KafkaIllegalStateException", "Cannot fetch record", "may have been lost")


def chain_of(error: BaseException) -> Chain:
    """The Java exceptions behind one of Python."""
    java: Any = None
    if isinstance(error, Py4JJavaError):
        java = error.java_exception
    elif isinstance(error, CapturedException):
        java = error._origin
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
    text = " ".join(f"{kind}: {message}" for kind, message in chain)
    if not any(kind.startswith(_KAFKA) for kind, _ in chain):
        if any(word in text for word in _DATA_LOSS):
            return _went_meanwhile(where, _last(chain))
        # A stage that failed tells its causes in its message only.
        chain = [(word.strip(":,()"), text) for word in text.split() if word.startswith(_KAFKA)]
        if not chain:
            return None
    return _named(chain, where)


def _named(chain: Chain, where: str) -> PolynyaError:
    names = [_simple(kind) for kind, _ in chain]
    why = _last(chain)
    if any("Authorization" in name for name in names):
        return _error(
            "POLYNYA-STR-007", "Kafka does not allow this user to read the topics", where, why,
            "grant Read and Describe on the topics to the user that `properties` name",
        )  # fmt: skip
    refused = _of_certificates(chain, names, where)
    if refused is not None:
        return refused
    if any(part in name for name in names for part in ("Authentication", "SslException", "Sasl")):
        return _error(
            "POLYNYA-STR-008", "Kafka does not accept who we say that we are", where, why,
            "look at `properties`: `security.protocol`, `sasl.mechanism`, `sasl.jaas.config`, the "
            "`ssl.` stores, and the variables that hold their secrets",
        )  # fmt: skip
    if any("ConfigException" in name for name in names) or _says(chain, _NOT_MADE):
        return _error(
            "POLYNYA-STR-009", "the Kafka client does not take its settings", where, why,
            "look at `bootstrap_servers` and `properties`",
        )  # fmt: skip
    if any(name in _UNREACHABLE for name in names):
        return _error(
            "POLYNYA-STR-005", "the brokers of Kafka do not answer", where, why,
            "nothing, if they come back: it is tried again with a growing pause. Otherwise look at "
            "`bootstrap_servers`, `security.protocol`, and what lies between here and there",
        )  # fmt: skip
    return _error(
        "POLYNYA-STR-010", f"Kafka refused a request: {names[-1]}", where, why,
        "it is tried again with a growing pause; the logs of the brokers say more",
    )  # fmt: skip


def _of_certificates(chain: Chain, names: Sequence[str], where: str) -> PolynyaError | None:
    """The error for certificates that we do not take; None when it is about something else."""
    why = _last(chain)
    if _says(chain, _OTHER_HOST):
        return _error(
            "POLYNYA-STR-081", "the certificate of a broker is for another host", where, why,
            "write `bootstrap_servers` with the names that are in the certificate. Those that the "
            "brokers advertise (`advertised.listeners`) have to be in it, too",
        )  # fmt: skip
    if any(part in name for name in names for part in _UNTRUSTED):
        return _error(
            "POLYNYA-STR-080", "the certificate of a broker is not trusted", where, why,
            "name the authority that signed it: `ssl.truststore.type: PEM` and "
            "`ssl.truststore.location`, a file on every machine that lands",
        )  # fmt: skip
    store = _says(chain, _STORES)
    if store:
        return _error(
            "POLYNYA-STR-082", "a file with certificates or keys cannot be used", where,
            f"{store}; {why}" if store not in why else why,
            "look at the `ssl.` stores in `properties`: whether this process may read the file, "
            "whether `type` says what it is, and the password of the key. The client does not take "
            "every encryption of a key: polynya explain POLYNYA-STR-082",
        )  # fmt: skip
    return None


def _says(chain: Chain, words: Iterable[str]) -> str | None:
    """The first message with one of some words."""
    found = (message for _, message in chain if any(word in message for word in words))
    return next(found, None)


def _went_meanwhile(where: str, why: str) -> DependencyError:
    return _error(
        "POLYNYA-STR-011", "records of a topic went while they were being read", where, why,
        "nothing: the next look counts what is lost, and goes on after it",
    )  # fmt: skip


def _error(code: str, message: str, where: str, why: str, fix: str) -> DependencyError:
    return DependencyError(code, message, where=where, why=why[:400], state=_STATE, fix=fix)


def _last(chain: Chain) -> str:
    kind, message = chain[-1]
    return f"{_simple(kind)}: {' '.join(message.split())}"


def _simple(kind: str) -> str:
    return kind.rpartition(".")[2].rpartition("$")[2]
