"""`engine:` of a task or a target: where Spark works, and how that is chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.aws import is_loopback
from polynya.model.config.fields import Duration, Frozen
from polynya.model.names import shown

_ROLE: Final = r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}$"
_PLACE: Final = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[\w.=/-]{1,900}"
_SCRIPT: Final = _PLACE + r"\.py$"
_ARCHIVE: Final = _PLACE + r"\.tar\.gz$"
_APPLICATION: Final = r"^[0-9a-z]{1,64}$"
_GLUE_JOB: Final = r"^[A-Za-z0-9][\w.-]{0,254}$"
_SHORTEST: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=1)
#: Gigabytes that a worker of EMR Serverless can have for each number of vCPU: least, most.
_MEMORY: Final = {1: (2, 8), 2: (4, 16), 4: (8, 30), 8: (16, 60), 16: (32, 120)}


def _pause(value: timedelta) -> timedelta:
    if not _SHORTEST <= value <= _LONGEST:
        message = "the time between two runs is 1 minute to 1 day"
        raise PydanticCustomError("polynya_value", "{message}", {"message": message})
    return value


def _matching(pattern: str, wanted: str) -> object:
    def check(text: str) -> str:
        # `$` also matches before a line end.
        if not re.fullmatch(pattern, text) or "\n" in text:
            message = f"{shown(text)} is not {wanted}"
            raise PydanticCustomError("polynya_value", "{message}", {"message": message})
        return text

    return AfterValidator(check)


def _text(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


Every: TypeAlias = Annotated[Duration, AfterValidator(_pause)]
_EVERY: Final = (
    "Pause between two runs; the next one starts then if files have landed, and once a day in "
    "any case. Default: `15m`."
)


class EmrServerlessEngine(Frozen):
    """Jobs of an EMR Serverless application."""

    mode: Literal["emr_serverless"] = Field(description="`emr_serverless`: as EMR Serverless jobs.")
    application_id: (
        Annotated[str, _matching(_APPLICATION, "the id of an application"), _text(_APPLICATION)]
        | None
    ) = Field(
        default=None,
        description="Id of the application, such as `00f1example2345`. Default: the application, "
        "role, script and archive that the stage of the agent has (`jobs` of its cluster).",
    )
    execution_role: Annotated[str, _matching(_ROLE, "the ARN of a role"), _text(_ROLE)] | None = (
        Field(default=None, description="ARN of the job's role. Required with `application_id`.")
    )
    entry_point: (
        Annotated[
            str, _matching(_SCRIPT, "an object such as `s3://BUCKET/entry.py`"), _text(_SCRIPT)
        ]
        | None
    ) = Field(
        default=None,
        description="The job's entry script, an object in S3. Required with `application_id`.",
    )
    environment: (
        Annotated[
            str,
            _matching(_ARCHIVE, "an object such as `s3://BUCKET/polynya.tar.gz`"),
            _text(_ARCHIVE),
        ]
        | None
    ) = Field(
        default=None,
        description="Archive of a Python environment with Polynya, an object in S3. Default, with "
        "`application_id`: the application's image contains Polynya.",
    )
    vcpu: Literal[1, 2, 4, 8, 16] = Field(
        default=4, description="Processors of the worker. Default: 4."
    )
    memory_gb: int | None = Field(
        default=None,
        ge=2,
        le=108,
        description="Its memory in GB. Default: 4 for each processor.",
    )
    every: Every = Field(default=timedelta(minutes=15), description=_EVERY)

    @property
    def memory(self) -> int:
        """Memory of the worker in GB."""
        return self.memory_gb or 4 * self.vcpu

    @model_validator(mode="after")
    def _fits(self) -> Self:
        least, most = _MEMORY[self.vcpu]
        # EMR adds a tenth to what is asked for.
        if not least <= self.memory <= most / 1.1:
            message = f"a worker of {self.vcpu} vCPU has {least} to {int(most / 1.1)} GB"
            raise PydanticCustomError("polynya_value", "{message}", {"message": message})
        return self

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        long = (self.application_id, self.execution_role, self.entry_point)
        if None in long and (any(long) or self.environment is not None):
            message = (
                "name `application_id`, `execution_role` and `entry_point`, or none of them and no "
                "`environment`, for those of the stage"
            )
            raise PydanticCustomError("polynya_value", "{message}", {"message": message})
        return self


class GlueEngine(Frozen):
    """Runs of a Glue job."""

    mode: Literal["glue"] = Field(description="`glue`: as runs of a Glue job.")
    job_name: (
        Annotated[str, _matching(_GLUE_JOB, "the name of a Glue job"), _text(_GLUE_JOB)] | None
    ) = Field(
        default=None,
        description="Name of the job, which defines script, role and environment. Default: the job "
        "that the stage of the agent has (`jobs` of its cluster).",
    )
    worker_type: (
        Literal["G.1X", "G.2X", "G.4X", "G.8X", "G.12X", "G.16X", "R.1X", "R.2X", "R.4X", "R.8X"]
        | None
    ) = Field(
        default=None, description="Type of the workers; only one of them works. Default: the job's."
    )
    workers: int | None = Field(
        default=None,
        ge=2,
        le=299,
        description="Number of workers. Glue requires two; more are idle. Default: 2 with a "
        "`worker_type`, else the job's.",
    )
    every: Every = Field(default=timedelta(minutes=15), description=_EVERY)


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


#: Message and fix for an engine that is unreachable.
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


class LocalEngine(Frozen):
    """Spark in a process of this machine."""

    mode: Literal["local"] = Field(description="`local`: Spark runs here.")


Engine: TypeAlias = LocalEngine | SparkEngine | EmrServerlessEngine | GlueEngine
#: Engines of AWS, to which work is submitted.
Submitted: TypeAlias = EmrServerlessEngine | GlueEngine
LOCAL: Final = LocalEngine(mode="local")


#: Modes that need no other setting.
_SHORT: Final = ("local", "emr_serverless", "glue")


def _named(value: Any) -> Any:
    """A mode is short for `{mode: …}`, and an address of a master for `{mode: spark, …}`."""
    if value in _SHORT:
        return {"mode": value}
    if isinstance(value, str):
        return {"mode": "spark", "master": value}
    if isinstance(value, dict) and "master" in value and "mode" not in value:
        return {"mode": "spark", **value}
    return value


class _EngineSchema:
    """The JSON Schema of an engine with its short forms."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> dict[str, Any]:
        short = [{"enum": [*_SHORT]}, {"type": "string", "pattern": MASTER_PATTERN}]
        return {"anyOf": [*short, handler(core)]}


EngineSetting: TypeAlias = Annotated[
    Annotated[Engine, Field(discriminator="mode")], BeforeValidator(_named), _EngineSchema
]


@dataclass(frozen=True, slots=True)
class Choice:
    """The cluster of a session, None for this process, and notes for the user."""

    cluster: SparkCluster | None
    notes: tuple[str, ...] = ()


def cluster_of(engine: Engine) -> SparkCluster | None:
    """The cluster of an engine, None where Spark runs in the process that works."""
    return engine.cluster() if isinstance(engine, SparkEngine) else None


def session_for(default: Engine, tasks: Mapping[str, Engine | None]) -> Choice:
    """Where one session does the work of tasks.

    Args:
        default: engine of the target.
        tasks: what each task names, by name; None: the default.
    """
    wanted = {name: engine or default for name, engine in tasks.items()}
    notes = [
        f"{name}: `engine` {engine.mode} is for agents; it runs in this process"
        for name, engine in wanted.items()
        if isinstance(engine, Submitted)
    ]
    here = {name: LOCAL if isinstance(one, Submitted) else one for name, one in wanted.items()}
    engines = list(dict.fromkeys(cluster_of(one) for one in here.values()))
    if len(engines) == 1:
        return Choice(engines[0], tuple(notes))
    cluster = cluster_of(default)
    notes += [
        f"{name}: its `engine` is not used together with tasks that have another one; run it by "
        "itself"
        for name, engine in here.items()
        if cluster_of(engine) != cluster
    ]
    return Choice(cluster, tuple(notes))
