"""The units that this node owns, by the records as it read them last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from polynya.cluster.coordination.documents import Ownership
from polynya.cluster.coordination.owning.records import Read, Records, Write
from polynya.cluster.coordination.register import Found
from polynya.cluster.coordination.shelf import GoOn, told
from polynya.cluster.coordination.standing import Decided, Pace
from polynya.cluster.unit import JobKey
from polynya.store.clock import Clock


@dataclass(frozen=True, slots=True)
class _Held:
    """A unit that is ours in `epoch`. `sure`: the record says so since our lease is trusted."""

    epoch: int
    sure: bool
    read_at: float


class Holdings:
    """What an incarnation owns.

    Attributes:
        me: the incarnation.
        floors: of units that are not ours, the highest epoch that was seen of them anywhere.
        decided, troubles: of the current turn.
    """

    def __init__(self, records: Records, clock: Clock, pace: Pace) -> None:
        self._records, self._clock, self._pace = records, clock, pace
        self._held: dict[JobKey, _Held] = {}
        self.me = ""
        self.floors: dict[JobKey, int] = {}
        self.decided: list[Decided] = []
        self.troubles: list[str] = []

    @property
    def units(self) -> frozenset[JobKey]:
        """What is ours, as far as known."""
        return frozenset(self._held)

    def sure(self) -> dict[JobKey, int]:
        """What is ours for sure, with the epoch."""
        return {unit: held.epoch for unit, held in self._held.items() if held.sure}

    def begin(self, me: str) -> None:
        """Be another incarnation from now on, which owns nothing."""
        for unit in sorted(self._held):
            self._lose(unit, "this node lost its lease")
        self.me = me

    def doubt(self) -> None:
        """Our lease was not trusted for a while: each record has to be read again."""
        self._held = {unit: replace(held, sure=False) for unit, held in self._held.items()}

    def take(self, unit: JobKey, epoch: int, reason: str) -> None:
        """Its record says that it is ours from now on."""
        self._held[unit] = _Held(epoch, sure=True, read_at=self._clock.monotonic())
        self.floors.pop(unit, None)
        self.decided.append(Decided("claimed", unit, reason, epoch))

    def check(self, go_on: GoOn) -> None:
        """Read the records of what is not sure, and those of some others in rotation."""
        doubtful = sorted(unit for unit, held in self._held.items() if not held.sure)
        others = sorted((held.read_at, unit) for unit, held in self._held.items() if held.sure)
        audited = [unit for _, unit in others[: self._pace.audits]]
        for batch in self._records.read([*doubtful, *audited], go_on):
            now = self._clock.monotonic()
            for unit in self._ours(batch):
                self._held[unit] = replace(self._held[unit], sure=True, read_at=now)

    def fenced(self, epochs: Mapping[JobKey, int], go_on: GoOn) -> None:
        """Tables are of other epochs: what the records still give us gets a higher one."""
        raised = []
        for unit, epoch in sorted(epochs.items()):
            held = self._held.get(unit)
            if held is not None:
                # Whatever comes of it: first the record has to say that the unit is still ours.
                self._held[unit] = replace(held, sure=False)
            if held is None or held.epoch <= epoch:
                self.floors[unit] = max(epoch, self.floors.get(unit, 0))
                raised += [unit] if held is not None else []
        self._rewrite(raised, self._raise, self._raised, go_on)

    def release(self, units: Iterable[JobKey], reason: str, go_on: GoOn) -> None:
        """Give units back: nobody owns them then."""

        def freed(record: Ownership, _: JobKey) -> Ownership:
            update = {"owner": None, "node": None, "since": self._clock.now(), "reason": reason}
            return record.model_copy(update=update)

        def done(unit: JobKey, _: Ownership) -> None:
            held = self._held.pop(unit)
            self.decided.append(Decided("released", unit, reason, held.epoch))

        self._rewrite(sorted(units)[: self._pace.most], freed, done, go_on)

    def _raise(self, record: Ownership, unit: JobKey) -> Ownership:
        epoch = max(record.epoch, self.floors[unit]) + 1
        reason = f"its table was in epoch {self.floors[unit]}"
        return record.model_copy(update={"epoch": epoch, "reason": reason})

    def _raised(self, unit: JobKey, record: Ownership) -> None:
        now = self._clock.monotonic()
        self._held[unit] = _Held(record.epoch, sure=True, read_at=now)
        self.floors.pop(unit, None)
        self.decided.append(Decided("raised", unit, record.reason, record.epoch))

    def _rewrite(
        self,
        units: list[JobKey],
        change: Callable[[Ownership, JobKey], Ownership],
        done: Callable[[JobKey, Ownership], None],
        go_on: GoOn,
    ) -> None:
        """Write records that are still ours, changed; who lost the race looks again next time."""
        for batch in self._records.read(units, go_on):
            writes: dict[JobKey, Write] = {
                unit: (change(found.document, unit), found.version)
                for unit, found in self._ours(batch).items()
            }
            for unit, result in self._records.write(writes).items():
                if result is True:
                    done(unit, writes[unit][0])
                    continue
                self._held[unit] = replace(self._held[unit], sure=False)
                if isinstance(result, Exception):
                    self.troubles.append(told(result))

    def _ours(self, batch: Mapping[JobKey, Read]) -> dict[JobKey, Found[Ownership]]:
        """The records that say that the unit is ours; what is not is lost."""
        ours = {}
        for unit, read in batch.items():
            if isinstance(read, Exception):
                self.troubles.append(told(read))
                continue
            held = self._held[unit]
            if read is None or read.document.epoch < held.epoch:
                self.floors[unit] = max(held.epoch, self.floors.get(unit, 0))
                now = "gone" if read is None else f"in epoch {read.document.epoch}"
                self._alarm(unit, held.epoch, f"its record is {now}, and was ours")
            elif read.document.owner == self.me:
                # In a higher epoch after a write of ours whose answer was lost.
                self._held[unit] = replace(held, epoch=read.document.epoch)
                ours[unit] = read
            elif read.document.epoch == held.epoch and read.document.owner is not None:
                self._alarm(unit, held.epoch, f"{read.document.owner} has it in our epoch")
            else:
                owner = read.document.node or "nobody"
                self._lose(unit, f"{owner} has it in epoch {read.document.epoch}")
        return ours

    def _alarm(self, unit: JobKey, epoch: int, reason: str) -> None:
        self.decided.append(Decided("alarm", unit, reason, epoch))
        self.troubles.append(f"POLYNYA-AGT-013: {unit.task}, {unit.name}: {reason}")
        self._lose(unit, reason)

    def _lose(self, unit: JobKey, reason: str) -> None:
        held = self._held.pop(unit)
        self.decided.append(Decided("lost", unit, reason, held.epoch))
