"""What is measured, case by case."""

import contextlib
import dataclasses
import http.client
import resource
import time
from collections.abc import Callable

import builds
import load
from bench import rates
from servers import Failed

IDLE_CONNECTIONS = 10_000
# Until what a process does after its start, or after a load, is done.
SETTLING_SECONDS = 2
FILL_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Case:
    """`measure` takes the run and a build of Onceward, and gives the figures of one round."""

    name: str
    what: str
    measure: Callable
    is_of_onceward: bool = True
    needs: tuple[str, ...] = ()
    # Measured only if it is named.
    is_extra: bool = False


# --- proxies that remember nothing, or no claims ------------------------------------------------------


def nginx(config, what, **changes):
    def measure(bench, _):
        with bench.nginx(config) as proxy:
            events = bench.events(what, **changes)
            bench.warm_up(proxy, events)
            return bench.measure(proxy, events)

    return measure


def floor(bench, _):
    with bench.floor(builds.floor()) as proxy:
        events = bench.events("new")
        bench.warm_up(proxy, events)
        return bench.measure(proxy, events)


# --- Onceward ---------------------------------------------------------------------------------------


def onceward(store_name, what, mode="enforce", **changes):
    def measure(bench, binary):
        with bench.store(store_name) as store, bench.onceward(binary, store, mode) as proxy:
            events = bench.events(what, **changes)
            bench.warm_up(proxy, events)
            return bench.measure(proxy, events, store)

    return measure


def replay_of_another(store_name):
    def measure(bench, binary):
        store, prefix = bench.executed_by_another(store_name, binary)
        with bench.onceward(binary, store) as proxy:
            events = bench.events("new", prefix=prefix)
            bench.warm_up(proxy, events)
            return bench.measure(proxy, events, store)

    return measure


def two_processes(store_name):
    def measure(bench, binary):
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(bench.store(store_name))
            proxies = [stack.enter_context(bench.onceward(binary, store)) for _ in range(2)]
            for proxy in proxies:
                bench.warm_up(proxy, bench.events("new"))
            return bench.measure_together(proxies, store)

    return measure


def idle(bench, binary):
    with bench.store("sync") as store, bench.onceward(binary, store) as proxy:
        time.sleep(SETTLING_SECONDS)
        return {"resident_mib": proxy.resident_mib()}


def idle_connections(bench, binary):
    """Each connection has had one answer, a replay but for the first."""
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files_max < 2 * IDLE_CONNECTIONS:
        raise Failed(f"{IDLE_CONNECTIONS} connections need `ulimit -Hn` of twice as many, not {files_max}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(bench.store("sync"))
        proxy = stack.enter_context(bench.onceward(binary, store))
        for _ in range(IDLE_CONNECTIONS):
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
            stack.callback(connection.close)
            connection.request("POST", "/webhooks/bench", body=b"{}", headers={"Idempotency-Key": "evt_1"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200 or answer.will_close:
                raise Failed(f"a connection is not kept: {answer.status}")
        time.sleep(SETTLING_SECONDS)
        return {"resident_mib": proxy.resident_mib()}


def remembered(bench, binary):
    """New events beside many remembered ones, and the memory that these take."""
    with bench.store("os") as store, bench.onceward(binary, store) as proxy:
        begin = bench.received()
        while bench.received() - begin < bench.options.remembered:
            load.wrk(proxy.port, bench.events("new", seconds=FILL_SECONDS))
        time.sleep(SETTLING_SECONDS)
        resident = {"resident_mib": proxy.resident_mib()}
        return {**bench.measure(proxy, bench.events("new"), store), **resident}


# --- what the stores do by themselves ---------------------------------------------------------------


def redis_benchmark(bench, _):
    with bench.store("redis") as store:
        return with_server(store.server, lambda: load.redis_benchmark(store.server.port, bench.options.seconds))


def pgbench(script):
    def measure(bench, _):
        server = bench.postgres()
        with bench.new_directory() as directory:
            return with_server(server, lambda: load.pgbench(server, script, bench.options.seconds, directory))

    return measure


def with_server(server, send):
    used = server.processor_seconds()
    told = send()
    return {**rates(told), "server_us": (server.processor_seconds() - used) / told.requests * 1e6}


def cold_build(bench, _):
    with bench.new_directory() as directory:
        return {"seconds": builds.seconds_of_a_cold_one(directory)}


REDIS = ("redis-server=redis-server", "redis-benchmark=redis-tools")
POSTGRES = ("pg_lsclusters=postgresql",)

CASES = [
    Case("nginx-plain", "nginx, a plain proxy", nginx("nginx-plain", "new"), False),
    Case("pass", '`mode = "pass"`', onceward("memory", "new", "pass")),
    Case("nginx-cache-new", "nginx proxy_cache, miss", nginx("nginx-cache", "new"), False),
    Case("memory-new", "new event, memory", onceward("memory", "new")),
    Case("os-new", "new event, embedded `os`", onceward("os", "new")),
    Case("sync-new", "new event, embedded `sync`", onceward("sync", "new")),
    Case("nginx-cache-hit", "nginx proxy_cache, hit", nginx("nginx-cache", "copies"), False),
    Case("memory-replay", "replay, memory", onceward("memory", "copies")),
    Case("os-replay", "replay, embedded `os`", onceward("os", "copies")),
    Case("sync-replay", "replay, embedded `sync`", onceward("sync", "copies")),
    Case("redis-benchmark", "redis-benchmark SET NX EX", redis_benchmark, False, REDIS),
    Case("redis-new", "new event, Redis", onceward("redis", "new"), needs=REDIS),
    Case("redis-replay", "replay, Redis, first in its process", replay_of_another("redis"), needs=REDIS),
    Case("pgbench-insert", "pgbench INSERT ON CONFLICT", pgbench("insert.sql"), False, POSTGRES),
    Case("postgres-new", "new event, PostgreSQL", onceward("postgres", "new"), needs=POSTGRES),
    Case("pgbench-select", "pgbench SELECT by primary key", pgbench("select.sql"), False, POSTGRES),
    Case("postgres-replay", "replay, PostgreSQL, first in its process", replay_of_another("postgres"), needs=POSTGRES),
    Case("latency-nginx", "nginx, a plain proxy, one connection", nginx("nginx-plain", "new", connections=1), False),
    Case("latency-os", "new event, embedded `os`, one connection", onceward("os", "new", connections=1)),
    Case("idle", "memory, idle", idle),
    Case("idle-connections", "memory, 10,000 idle connections", idle_connections),
    Case("floor", "a proxy that only passes on, on hyper", floor, False, is_extra=True),
    Case("redis-two-new", "new event, two processes on one Redis", two_processes("redis"), needs=REDIS, is_extra=True),
    Case("postgres-two-new", "new event, two processes on one PostgreSQL", two_processes("postgres"), needs=POSTGRES,
         is_extra=True),
    Case("remembered", "new event, embedded `os`, with those remembered", remembered, is_extra=True),
    Case("build", "cold release build", cold_build, False, is_extra=True),
]
