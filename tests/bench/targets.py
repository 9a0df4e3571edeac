"""What the figures have to reach."""

import dataclasses
import operator
from collections.abc import Callable

RATIO = operator.truediv
DIFFERENCE = operator.sub


@dataclasses.dataclass(frozen=True)
class Target:
    """A figure of a case, alone or compared with that of another case in the same round, and its bound."""

    case: str
    figure: str
    bound: float
    is_floor: bool = False
    against: str | None = None
    compared: Callable = RATIO

    def of_round(self, own, other):
        return own[self.figure] if self.against is None else self.compared(own[self.figure], other[self.figure])

    def is_met(self, value):
        return value >= self.bound if self.is_floor else value <= self.bound

    def unit(self):
        if self.against and self.compared is RATIO:
            return "times"
        return {"processor_us": "µs", "p50_us": "µs", "resident_mib": "MiB", "seconds": "s"}[self.figure]


def rate(case, against, at_least):
    return Target(case, "per_second", at_least, True, against)


def processor(case, at_most):
    return Target(case, "processor_us", at_most)


TARGETS = [
    rate("pass", "nginx-plain", 0.8),
    processor("pass", 26),
    rate("sync-new", "nginx-cache-new", 1.1),
    rate("sync-new", "nginx-plain", 0.42),
    processor("sync-new", 60),
    rate("sync-replay", "nginx-cache-hit", 1.25),
    Target("sync-replay", "p99_us", 1.0, against="nginx-cache-hit"),
    processor("sync-replay", 13),
    rate("redis-new", "redis-benchmark", 0.25),
    processor("redis-new", 60),
    rate("redis-replay", "redis-benchmark", 0.45),
    processor("redis-replay", 30),
    rate("postgres-new", "pgbench-insert", 0.3),
    processor("postgres-new", 90),
    rate("postgres-replay", "pgbench-select", 0.4),
    Target("latency-os", "p50_us", 120, against="latency-nginx", compared=DIFFERENCE),
    Target("idle", "resident_mib", 20),
    Target("idle-connections", "resident_mib", 150),
    Target("remembered", "resident_mib", 150),
    Target("build", "seconds", 180),
]
