"""The machine and the programs of a run."""

import os
import platform
import subprocess
from pathlib import Path

from load import COPIED_KEYS, POSTGRES_CLIENTS, REDIS_CLIENTS
from servers import postgres_program


def version(*command):
    """The first line that a program prints of itself."""
    try:
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError:
        return f"no {Path(command[0]).name}"
    return told.stdout.splitlines()[0].strip()


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"machine: {model}, {os.cpu_count()} processors, {memory:.0f} GiB, Linux {platform.release()}"


def facts(directory, options, rounds, builds):
    filesystem = subprocess.run(["df", "--output=fstype", directory], capture_output=True, text=True, check=True)
    programs = [
        version("nginx", "-v"),
        version("redis-server", "--version"),
        version(postgres_program("postgres"), "--version"),
        " ".join(version("wrk", "-v").split()[:2]),
        f"Python {platform.python_version()}",
    ]
    return [
        machine(),
        f"load of the machine at the start: {os.getloadavg()[0]:.2f}",
        f"the stores lie on {filesystem.stdout.split()[-1]}",
        *(f"build {name}: {version(str(file), '--version')}" for name, file in builds.items()),
        *programs,
        f"rounds: {rounds}, with {options.seconds} s of each case after a warm-up; every figure is the median, "
        "with the least and the most",
        f"wrk with one thread and {options.connections} connections, bodies of {options.body_bytes} bytes, "
        f"{COPIED_KEYS} events that are copied; wrk and the receiver run on the same processors",
        "processor µs: of the proxy process, user and kernel, for each request; forwarded: of each request, "
        "as the receiver counts",
        "Redis: appendonly, appendfsync everysec, no rewriting meanwhile; redis-benchmark with "
        f"{REDIS_CLIENTS} clients, one command at a time",
        "PostgreSQL: built-in settings, so fsync and synchronous_commit are on; pgbench with "
        f"{POSTGRES_CLIENTS} clients on one thread, prepared statements",
    ]
