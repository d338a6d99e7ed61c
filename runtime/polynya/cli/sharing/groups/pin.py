"""`polynya cluster pin-agent` and `unpin-agent`: which version network agents run."""

from __future__ import annotations

import random
from pathlib import Path

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.sharing.place import Place, store_of
from polynya.store.clock import SystemClock

_TOKEN_BITS = 128


def pin_agent(
    package: Path,
    /,
    *,
    reason: str = "",
    coordination: str | None = None,
    context: Context,
) -> int:
    """Pin the version of the network agents of a coordination place.

    Each agent fetches the package, verifies it and tries it next to the running version, which
    continues if the new one does not prove that it works. `make package` builds such a package as
    `code.tar`.

    For example: `polynya cluster pin-agent code.tar --coordination s3://acme-config/coordination`.

    Args:
        package: file with the code.
        reason: reason to show to other operators.
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.updating.pin import MAX_PACKAGE_BYTES, put_pin

    store, _ = store_of(context, coordination)
    try:
        size = package.stat().st_size
        data = package.read_bytes() if 0 < size <= MAX_PACKAGE_BYTES else b""
    except OSError as error:
        raise usage_error(f"{package}: {error.strerror}") from None
    if not data:
        raise usage_error(f"{package} has {size:,} bytes", f"1 to {MAX_PACKAGE_BYTES:,} bytes")
    token = f"{random.SystemRandom().getrandbits(_TOKEN_BITS):032x}"
    by, now = Place.person(), SystemClock().now()
    pin = put_pin(store, data, by=by, reason=reason, now=now, token=token)
    shown = {"sha256": pin.sha256, "size": pin.size, "by": by, "reason": reason}
    context.output.result("network.pin", shown, f"network agents are to run {pin.sha256[:12]}")
    return ExitCode.OK


def unpin_agent(*, coordination: str | None = None, context: Context) -> int:
    """Let the network agents of a coordination place run the installed version again.

    For example: `polynya cluster unpin-agent`.

    Args:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.updating.pin import take_pin_back

    was = take_pin_back(store_of(context, coordination)[0])
    text = "network agents are to run what is installed" if was else "nothing was pinned"
    context.output.result("network.pin", {"sha256": None, "was": was}, text)
    return ExitCode.OK
