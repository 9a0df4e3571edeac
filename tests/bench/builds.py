"""Release builds of this repository."""

import functools
import os
import subprocess
import time

from servers import HERE

ROOT = HERE.parent.parent
BUILD = ["cargo", "build", "--release", "--locked"]


def onceward():
    return built("--bin", "onceward") / "onceward"


@functools.cache
def floor():
    """The proxy that only passes on."""
    return built("--example", "floor") / "examples/floor"


def built(*what):
    """The directory that the programs are in."""
    subprocess.run([*BUILD, *what], cwd=ROOT, check=True)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"


def seconds_of_a_cold_one(directory):
    begin = time.monotonic()
    subprocess.run([*BUILD, "--quiet", "--bin", "onceward", "--target-dir", directory], cwd=ROOT, check=True)
    return time.monotonic() - begin
