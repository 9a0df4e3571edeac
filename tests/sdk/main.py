#!/usr/bin/env python3
"""Runs the senders' own libraries as senders and as receivers around a running proxy.

    main.py BINARY [NAME...]      NAME: a library, as it is named in the output; none: all

For each library: what it signs is forwarded once and answered from memory after that; what arrives verifies with the
library; a changed body, an old time and another secret are refused with 401 and forwarded to nobody.
"""

import sys
import time

from delivery import Asked
from node_sdks import NodeSdks
from proxy import Proxy, Receiver
from python_sdks import SDKS

FORWARDED = (200, "executed")
REPLAYED = (200, "replayed")
REFUSED = (401, "refused")
# Older than any tolerance of a preset, in seconds.
LONG_AGO = 400 * 24 * 3600


def problems(sdk, proxy, receiver):
    """What is not as it should be, and how much was looked at."""
    path, event = f"/{sdk.name}", f"evt-{sdk.name}-1"
    secret = sdk.signing_secret or sdk.secret
    checks = []

    def check(what, found, expected):
        checks.append((what, found, expected))

    genuine = sdk.sign(Asked(path, event, secret))
    check("forwards what the library signed", proxy.answers(genuine), FORWARDED)
    arrived = [delivery for delivery in receiver.received if delivery.path == path]
    check("forwards it once", len(arrived), 1)
    check("forwards its bytes", [delivery.body for delivery in arrived], [genuine.body])
    check("what arrives verifies", [sdk.verifies(delivery, secret) for delivery in arrived], [True])
    check("answers the copy itself", proxy.answers(genuine), REPLAYED)
    if sdk.covers_body:
        fresh = Asked(path, f"evt-{sdk.name}-2", secret)
        check("refuses a changed body", proxy.answers(sdk.tampered(sdk.sign(fresh), fresh.event)), REFUSED)
    other = Asked(path, f"evt-{sdk.name}-3", sdk.other_secret)
    check("refuses another secret", proxy.answers(sdk.sign(other)), REFUSED)
    if sdk.timed:
        old = Asked(path, f"evt-{sdk.name}-4", secret, time.time() - LONG_AGO)
        check("refuses an old time", proxy.answers(sdk.sign(old)), REFUSED)
    check("forwards nothing else", receiver.count(path), 1)
    wrong = [f"{sdk.name}: {what}: expected {expected}, found {found}" for what, found, expected in checks if found != expected]
    return wrong, len(checks)


def main(binary, *names):
    with NodeSdks() as node:
        sdks = [sdk for sdk in [*SDKS, *node.sdks] if not names or sdk.name in names]
        if not sdks:
            raise SystemExit(f"no library is called {' or '.join(names)}")
        receiver = Receiver()
        proxy = Proxy(binary, sdks, receiver)
        failed = 0
        try:
            for sdk in sdks:
                wrong, count = problems(sdk, proxy, receiver)
                failed += bool(wrong)
                print("\n".join(wrong) or f"{sdk.name}: {count} checks", flush=True)
        finally:
            proxy.stop()
    print(f"{len(sdks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    sys.exit(main(*sys.argv[1:]))
