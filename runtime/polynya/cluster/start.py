"""Put an agent together: its source, its work folder, its engine, the places it reports to."""

from __future__ import annotations

import fcntl
import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from polynya.cluster.accept import Acceptance
from polynya.cluster.agent import Agent, Pace, Ports
from polynya.cluster.messages import ConfigurationRead, Inbox, Workers
from polynya.cluster.metrics import MetricsOutlet
from polynya.cluster.outlets import Encode, StateFile, StreamOutlet
from polynya.cluster.report import Node, summary
from polynya.cluster.systemd import notifier, watchdog_seconds
from polynya.cluster.work import EngineWorkers
from polynya.engine.runner import as_polynya
from polynya.engine.start import start_engine
from polynya.model.aws import AwsAccess
from polynya.model.errors import ConflictError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.location import parse_location
from polynya.observe.events import EventSink
from polynya.store.clock import Clock, SystemClock
from polynya.store.configuration import ConfigurationSource, FolderSource
from polynya.store.object_store import LocalObjectStore

_LOCK_FILE = "lock"
