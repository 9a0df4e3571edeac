"""What is sent, and what the senders say of it: wrk, redis-benchmark and pgbench."""

import csv
import dataclasses
import subprocess

from servers import DATABASE_USER, HERE, Failed, postgres_program

REDIS_CLIENTS = 64
POSTGRES_CLIENTS = 32
# Of one transaction in twenty pgbench writes down how long it took.
SAMPLED = 0.05
COPIED_KEYS = 1000


@dataclasses.dataclass(frozen=True)
class Events:
    """Requests that wrk sends: `new` ones or `copies` of the same few, whose keys begin with the prefix."""

    what: str
    prefix: str
    seconds: int
    connections: int
    body_bytes: int


@dataclasses.dataclass(frozen=True)
class Told:
    """What a sender says of what it has sent."""

    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    errors: int


def wrk(port, events):
    """Sends events to a proxy from one thread."""
    options = ["-t", "1", "-c", events.connections, "-d", f"{events.seconds}s", "--timeout", "10s"]
    url = f"http://127.0.0.1:{port}/webhooks/bench"
    what = [events.what, events.prefix, COPIED_KEYS, events.body_bytes]
    output = run(["wrk", *options, "-s", HERE / "events.lua", url, "--", *what])
    result = next(line for line in output.splitlines() if line.startswith("result "))
    requests, micros, p50, p99, errors = (int(word) for word in result.split()[1:])
    return Told(requests, micros / 1e6, p50, p99, errors)


def together(told):
    """What several senders say that sent at the same time, each as many as it could."""
    return Told(
        requests=sum(each.requests for each in told),
        seconds=max(each.seconds for each in told),
        p50_us=max(each.p50_us for each in told),
        p99_us=max(each.p99_us for each in told),
        errors=sum(each.errors for each in told),
    )


def redis_benchmark(port, seconds):
    """Takes locks with keys of their own, one command at a time on each connection."""
    count = 50_000 * seconds
    options = ["-p", port, "-c", REDIS_CLIENTS, "-n", count, "-r", 1_000_000_000, "--csv"]
    output = run(["redis-benchmark", *options, "SET", "event:__rand_int__", "done", "NX", "EX", 86_400])
    told = list(csv.DictReader(output.splitlines()))[-1]
    micros = [float(told[name]) * 1e3 for name in ("p50_latency_ms", "p99_latency_ms")]
    return Told(count, count / float(told["rps"]), *micros, 0)


def pgbench(server, script, seconds, directory):
    """Runs one prepared statement from one thread."""
    options = ["-n", "-M", "prepared", "-c", POSTGRES_CLIENTS, "-j", 1, "-T", seconds]
    log = ["--log", f"--sampling-rate={SAMPLED}", f"--log-prefix={directory / 'pgbench'}"]
    where = ["-h", "127.0.0.1", "-p", server.port, "-U", DATABASE_USER, "postgres"]
    output = run([postgres_program("pgbench"), *options, *log, "-f", HERE / script, *where])
    told = dict(line.split(":", 1) for line in output.splitlines() if ":" in line)
    requests = int(told["number of transactions actually processed"])
    failed = int(told.get("number of failed transactions", "0").split()[0])
    rate = float(next(line for line in output.splitlines() if line.startswith("tps = ")).split()[2])
    files = directory.glob("pgbench.*")
    latencies = sorted(int(line.split()[2]) for file in files for line in file.read_text().splitlines())
    p50, p99 = (latencies[len(latencies) * percent // 100] for percent in (50, 99))
    return Told(requests, requests / rate, p50, p99, failed)


def psql(server, *statements):
    """Runs what `-c` or `-f` gives."""
    options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", server.port, "-U", DATABASE_USER]
    run([postgres_program("psql"), *options, *statements, "postgres"])


def run(command):
    words = [str(word) for word in command]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Failed(f"`{' '.join(words)}`:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return ended.stdout
