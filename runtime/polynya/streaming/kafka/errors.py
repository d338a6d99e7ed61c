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
    if any(part in name for name in names for part in ("Authentication", "SslException", "Sasl")):
        return _error(
            "POLYNYA-STR-008", "Kafka does not accept who we say that we are", where, why,
            "look at `properties`: `security.protocol`, `sasl.mechanism`, `sasl.jaas.config`, the "
            "`ssl.` stores, and the variables that hold their secrets",
        )  # fmt: skip
    if any("ConfigException" in name for name in names):
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
