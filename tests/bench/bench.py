"""What the cases of a run share: the receiver, the stores, and the way to measure."""

import contextlib
import dataclasses
import itertools
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import load
import servers
from servers import Failed

WARM_UP_SECONDS = 1
# All copies must have been executed before they are measured. With long bodies that takes many seconds.
WARM_UPS_MAX = 120
# A process replays events at most so many times as fast as another one executes them.
REPLAYS_PER_NEW = 5
CONNECTIONS_KEPT = 64


@dataclasses.dataclass(frozen=True)
class Options:
    """How every case is measured."""

    seconds: int
    connections: int
    body_bytes: int
    remembered: int


@dataclasses.dataclass(frozen=True)
class Store:
    """What the configuration says of it, and its server, if it has one."""

    table: str
    server: servers.Server | None = None


class Bench:
    """A run. The servers that it starts for several cases end with the stack."""

    def __init__(self, directory, options, stack):
        self.directory, self.options, self.stack = directory, options, stack
        self.names = (f"n{number}" for number in itertools.count())
        self.upstream = stack.enter_context(servers.nginx(directory, "upstream", "/count", {}))
        self.looks = 0
        self.postgres_server = None
        self.executed = {}

    @contextlib.contextmanager
    def new_directory(self):
        with tempfile.TemporaryDirectory(dir=self.directory) as name:
            yield Path(name)

    # --- proxies --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def nginx(self, config):
        kept = max(self.options.connections, CONNECTIONS_KEPT)
        values = {"UPSTREAM": self.upstream.port, "CONNECTIONS": kept}
        with self.new_directory() as directory, servers.nginx(directory, config, "/", values) as proxy:
            yield proxy

    @contextlib.contextmanager
    def onceward(self, binary, store, mode="enforce"):
        values = {"UPSTREAM": self.upstream.port, "STORE": store.table, "MODE": mode}
        with self.new_directory() as directory, servers.onceward(directory, binary, values) as proxy:
            yield proxy

    @contextlib.contextmanager
    def floor(self, program):
        with self.new_directory() as directory, servers.floor(directory, program, self.upstream.port) as proxy:
            yield proxy

    # --- stores ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def store(self, name):
        """A new one: `memory`, `sync` or `os` (embedded), `redis` or `postgres`."""
        with contextlib.ExitStack() as stack:
            if name == "memory":
                yield Store("[store.memory]")
            elif name == "redis":
                server = self.redis(stack)
                yield Store(f'[store.redis]\nurls = ["redis://127.0.0.1:{server.port}"]', server)
            elif name == "postgres":
                server, database = self.postgres(), next(self.names)
                load.psql(server, "-c", f"CREATE DATABASE {database}")
                stack.callback(load.psql, server, "-c", f"DROP DATABASE {database} WITH (FORCE)")
                url = f"postgres://{servers.DATABASE_USER}@127.0.0.1:{server.port}/{database}"
                yield Store(f'[store.postgres]\nurl = "{url}"', server)
            else:
                path = stack.enter_context(self.new_directory()) / "data"
                yield Store(f'[store.embedded]\npath = "{path}"\ndurability = "{name}"')

    def redis(self, stack):
        """A new server, which ends with the stack."""
        return stack.enter_context(servers.redis(stack.enter_context(self.new_directory())))

    def postgres(self):
        """The one server of the run: a new one would first have to make the files of its log."""
        if self.postgres_server is None:
            directory = self.stack.enter_context(self.new_directory())
            self.postgres_server = self.stack.enter_context(servers.postgres(directory))
            load.psql(self.postgres_server, "-f", servers.HERE / "table.sql")
        load.psql(self.postgres_server, "-c", "CHECKPOINT")
        return self.postgres_server

    def executed_by_another(self, name, binary):
        """A store in which a process that has ended has executed many events, and the prefix of their keys."""
        if (name, binary) not in self.executed:
            store = self.stack.enter_context(self.store(name))
            with self.onceward(binary, store) as proxy:
                events = self.events("new", seconds=REPLAYS_PER_NEW * self.options.seconds)
                load.wrk(proxy.port, events)
            self.executed[name, binary] = store, events.prefix
        return self.executed[name, binary]

    # --- measuring ------------------------------------------------------------------------------------

    def events(self, what, **changes):
        options = self.options
        usual = {"prefix": next(self.names), "seconds": options.seconds, "connections": options.connections}
        return load.Events(what, body_bytes=options.body_bytes, **{**usual, **changes})

    def received(self):
        """How many requests have reached the receiver, looks at its counters left out."""
        self.looks += 1
        counters = servers.answer(self.upstream.port, "/count").splitlines()
        return int(counters[2].split()[2]) - self.looks

    def warm_up(self, proxy, events):
        """Sends other new events for a moment, or the copies until all are answered without the receiver."""
        is_new = events.what == "new"
        prefix = next(self.names) if is_new else events.prefix
        for _ in range(WARM_UPS_MAX):
            before = self.received()
            load.wrk(proxy.port, dataclasses.replace(events, prefix=prefix, seconds=WARM_UP_SECONDS))
            if is_new or self.received() == before:
                return self.calm_down()
        raise Failed("copies are forwarded: there is nothing to measure")

    def calm_down(self):
        """Waits until nothing arrives any more: the proxy goes on with what the sender has hung up on."""
        before = None
        while before != (before := self.received()):
            time.sleep(0.1)

    def measure(self, proxy, events, store=None):
        """Sends events to a warm proxy, and says what that cost."""
        return self.measured([proxy], store, lambda: load.wrk(proxy.port, events))

    def measure_together(self, proxies, store):
        """Sends new events to warm proxies on one store at the same time, over an equal share of connections."""
        share = max(1, self.options.connections // len(proxies))

        def send():
            with ThreadPoolExecutor(len(proxies)) as senders:
                events = [self.events("new", connections=share) for _ in proxies]
                return load.together(list(senders.map(load.wrk, [proxy.port for proxy in proxies], events)))

        return self.measured(proxies, store, send)

    def measured(self, proxies, store, send):
        received, used = self.received(), used_by(proxies)
        server = [store.server] if store and store.server else []
        used_by_server = used_by(server)
        told = send()
        figures = rates(told)
        figures["processor_us"] = (used_by(proxies) - used) / told.requests * 1e6
        if server:
            figures["server_us"] = (used_by(server) - used_by_server) / told.requests * 1e6
        figures["forwarded"] = (self.received() - received) / told.requests
        return figures


def used_by(processes):
    return sum(process.processor_seconds() for process in processes)


def rates(told):
    """The figures that a sender alone can say."""
    if told.requests == 0:
        raise Failed("nothing was answered")
    return {
        "per_second": told.requests / told.seconds,
        "p50_us": told.p50_us,
        "p99_us": told.p99_us,
        "errors": told.errors,
    }
