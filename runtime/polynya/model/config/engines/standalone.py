"""A standalone Spark cluster: its master, and how its executors reach this process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.aws import is_loopback
from polynya.model.config.fields import Frozen
from polynya.model.contract.identifiers import shown

_SCHEME: Final = "spark://"
_HOST: Final = r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:]{2,45}\])"
MASTER_PATTERN: Final = rf"^spark://{_HOST}:[0-9]{{1,5}}(,{_HOST}:[0-9]{{1,5}})*$"
_MEMORY_PATTERN: Final = r"^[1-9][0-9]{0,6}[mg]$"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A standalone cluster, and how its executors reach this process; see `SparkEngine`."""

    master: str
    host: str
    python: str | None = None
    memory: str | None = None

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each master."""
        pairs = (one.rpartition(":") for one in self.master.removeprefix(_SCHEME).split(","))
        return tuple((host.strip("[]"), int(port)) for host, _, port in pairs)


def _refused(text: str, wanted: str) -> PydanticCustomError:
    message = f"{shown(text)} is not {wanted}"
    return PydanticCustomError("polynya_value", "{message}", {"message": message})


def _master(text: str) -> str:
    ports = re.findall(r":(\d{1,5})(?=,|$)", text)
    if not re.fullmatch(MASTER_PATTERN, text) or not all(0 < int(port) < 65536 for port in ports):
        raise _refused(text, "the address of a Spark master such as `spark://10.0.0.5:7077`")
    return text


def _host(text: str) -> str:
    if not re.fullmatch(_HOST, text):
        raise _refused(text, "the name or the address of a machine")
    return text


def _python(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise _refused(text, "an absolute path")
    return text


def _memory(text: str) -> str:
    if not re.fullmatch(_MEMORY_PATTERN, text):
        raise _refused(text, "a size such as `2g` or `900m`")
    return text


#: What is wrong with an engine that is unreachable, and the way out.
UNREACHABLE: Final = (
    "the Spark master is on another machine, and its executors cannot reach this one",
    "`engine: {master: …, host: ADDRESS}` with an address of this machine",
)


class SparkEngine(Frozen):
    """A standalone Spark cluster. Its executors do what takes more than one task."""

    mode: Literal["spark"] = Field(
        default="spark", description="`spark`: a standalone Spark cluster. Optional."
    )
    master: Annotated[
        str,
        AfterValidator(_master),
        WithJsonSchema({"type": "string", "pattern": MASTER_PATTERN}),
    ] = Field(description="Address of the master; for several: `spark://A:7077,B:7077`.")
    host: Annotated[str, AfterValidator(_host)] | None = Field(
        default=None,
        description="Name or address under which executors connect to this machine. Required if "
        "the master is on another machine.",
    )
    python: Annotated[str, AfterValidator(_python)] | None = Field(
        default=None,
        description="Path of Python on the workers. Default: the path of the running Python.",
    )
    memory: (
        Annotated[
            str,
            AfterValidator(_memory),
            WithJsonSchema({"type": "string", "pattern": _MEMORY_PATTERN}),
        ]
        | None
    ) = Field(
        default=None, description="Heap of each executor, such as `2g`. Default: Spark's, 1 GB."
    )

    def cluster(self) -> SparkCluster:
        """The settings that a session is made with."""
        return SparkCluster(self.master, self.host or "127.0.0.1", self.python, self.memory)

    @property
    def is_unreachable(self) -> bool:
        """Whether executors may be on machines from which nothing leads here."""
        if self.host is not None:
            return False
        hosts = self.master.removeprefix(_SCHEME).split(",")
        return not all(is_loopback(f"{_SCHEME}{host}") for host in hosts)
