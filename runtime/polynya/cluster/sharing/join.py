"""Make a node a member of its cluster: the member, its thread, the gossip, its part."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from polynya import __version__
from polynya.cluster.control.heard import HeardWriter
from polynya.cluster.control.leaving import Leaving
from polynya.cluster.control.place import coordination_store
from polynya.cluster.control.tasks import WorkWishes
from polynya.cluster.control.wishes import Wishes
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.register import Register
from polynya.cluster.coordination.standing import Me
from polynya.cluster.gossip.messages import Sender
from polynya.cluster.gossip.port import Gossip, Silence
from polynya.cluster.gossip.stream_gossip import StreamGossip
from polynya.cluster.messages import Inbox
from polynya.cluster.placement.facts import Rules
from polynya.cluster.placement.propose import propose
from polynya.cluster.sharing.part import Part
from polynya.cluster.sharing.thread import MemberThread
from polynya.model.config.aws import AwsAccess
from polynya.observe.events import EventSink
from polynya.store.clock import BootClock
from polynya.store.streams import stream_at

T = TypeVar("T")

#: Who asks for the drain of a node that AWS recommends to leave.
BY_AWS: Final = "AWS"
#: So many requests of one turn are under way at a time.
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a node takes part.

    Attributes:
        place: the coordination place, a folder or `s3://BUCKET/PREFIX`.
        cluster: its name.
        node: id of this node.
        stream: the workload stream, None when nodes do not tell each other anything.
        on_demand: AWS does not take this machine back.
    """

    place: str
    cluster: str
    node: str
    stream: str | None
    on_demand: bool


def join(sharing: Sharing, access: AwsAccess, inbox: Inbox, tell: EventSink) -> Part:
    """Begin to take turns; what comes of them goes to the inbox.

    Raises:
        ConfigError: a place or a stream that cannot be.
    """
    clock, source = BootClock(), random.SystemRandom()
    store = coordination_store(sharing.place, access)
    me = Me(sharing.node, sharing.on_demand, float(os.cpu_count() or 1), __version__)
    member = Member(
        store,
        sharing.cluster,
        me,
        partial(propose, rules=Rules()),
        clock=clock,
        random=source,
        together=_InThreads(),
    )
    register = Register(store, sharing.cluster, source)
    thread = MemberThread(
        member,
        lambda incarnation, wake: _gossip(sharing, incarnation, access, clock, wake),
        WorkWishes(register, sharing.node, clock),
        Leaving(Wishes(register, BY_AWS, clock.now), sharing.node),
        inbox,
        watcher=HeardWriter(register, clock, stream=sharing.stream is not None),
    )
    thread.start()
    return Part(sharing.node, thread, tell, clock.monotonic)


def _gossip(
    sharing: Sharing,
    incarnation: str,
    access: AwsAccess,
    clock: BootClock,
    wake: Callable[[], None],
) -> Gossip:
    if sharing.stream is None:
        return Silence()
    sender = Sender(sharing.cluster, sharing.node, incarnation)
    stream = stream_at(sharing.stream, access, clock)
    gossip = StreamGossip(sender, stream, clock=clock, draw=random.random, wake=wake)
    gossip.start()
    return gossip


class _InThreads:
    """Does several requests at the same time; see `Together`."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="coordination")

    def __call__(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        if len(calls) == 1:
            return [calls[0]()]
        return list(self._pool.map(lambda call: call(), calls))
