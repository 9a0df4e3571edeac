"""What a run has found: tables for people, JSON for programs."""

import statistics

from cases import CASES
from targets import TARGETS


def short(value):
    """Three digits that count, and all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


# Figures of a table: title, and how one value is written.
RATES = {
    "per_second": ("requests/s", lambda value: f"{value:,.0f}"),
    "processor_us": ("processor µs", lambda value: f"{value:.1f}"),
    "server_us": ("store's server µs", lambda value: f"{value:.1f}"),
    "p50_us": ("p50 ms", lambda value: short(value / 1e3)),
    "p99_us": ("p99 ms", lambda value: short(value / 1e3)),
    "forwarded": ("forwarded", lambda value: f"{value:.3f}"),
    "errors": ("errors", lambda value: f"{value:.0f}"),
}
SIZES = {
    "resident_mib": ("resident MiB", lambda value: f"{value:.1f}"),
    "seconds": ("seconds", lambda value: f"{value:.0f}"),
}
COMPARED = ("per_second", "processor_us", "p50_us", "p99_us", "resident_mib")


class Results:
    """The figures of each round, by case and by build; what is not Onceward has the build ``None``."""

    def __init__(self):
        self.rounds = {}

    def add(self, case, build, figures):
        self.rounds.setdefault((case.name, build), []).append(figures)

    def of(self, name, build):
        """The rounds of a case of Onceward, or of one that is the same for every build."""
        return self.rounds.get((name, build)) or self.rounds.get((name, None)) or []

    def builds(self):
        return list(dict.fromkeys(build for _, build in self.rounds if build)) or [None]


class Spread:
    """The median of some values, the smallest and the largest."""

    def __init__(self, values):
        self.median, self.least, self.most = statistics.median(values), min(values), max(values)

    def text(self, write):
        least, median, most = write(self.least), write(self.median), write(self.most)
        return median if least == most else f"{median} ({least}..{most})"

    def json(self):
        return {"median": self.median, "min": self.least, "max": self.most}


def spreads(rounds):
    """The spread of every figure of a case."""
    return {figure: Spread([figures[figure] for figures in rounds]) for figure in rounds[0]}


def rows(results):
    """Case, build and spreads, in the order of the cases."""
    for case in CASES:
        for (name, build), rounds in results.rounds.items():
            if name == case.name:
                yield case, build, spreads(rounds)


def judged(results):
    """Target, build, and the spread of what it is held to, for all that was measured."""
    for target in TARGETS:
        for build in results.builds():
            own = results.of(target.case, build)
            other = results.of(target.against, build) if target.against else own
            values = [target.of_round(*pair) for pair in zip(own, other)]
            if values:
                yield target, build, Spread(values)


def compared(results):
    """Case, build, and its figures as multiples of those of the first build."""
    first, *others = results.builds()
    for case in CASES:
        for build in others:
            pairs = list(zip(results.rounds.get((case.name, build), []), results.rounds.get((case.name, first), [])))
            # A figure is left out where it is missing, or too small to be compared.
            figures = [name for name in COMPARED if pairs and all(base.get(name) for _, base in pairs)]
            if figures:
                yield case, build, {name: Spread([own[name] / base[name] for own, base in pairs]) for name in figures}


# --- for people -------------------------------------------------------------------------------------


def table(header, lines):
    """A table in Markdown, its columns as wide as their cells."""
    lines = [[str(cell) for cell in line] for line in lines]
    widths = [max(len(line[column]) for line in [header, *lines]) for column in range(len(header))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in [header, rule, *lines]
    )


def figures_table(results, figures):
    """The rows that have one of the figures."""
    lines = [
        [case.name, case.what, build or ""]
        + [found[figure].text(write) if figure in found else "" for figure, (_, write) in figures.items()]
        for case, build, found in rows(results)
        if not found.keys().isdisjoint(figures)
    ]
    return lines and table(["case", "what", "build", *(title for title, _ in figures.values())], lines)


def targets_table(results):
    lines = []
    for target, build, found in judged(results):
        bound = f"{'at least' if target.is_floor else 'at most'} {target.bound:g} {target.unit()}"
        met = "yes" if target.is_met(found.median) else "no"
        lines.append([target.case, build or "", target.figure, target.against or "", found.text(short), bound, met])
    return lines and table(["case", "build", "figure", "against", "measured", "target", "met"], lines)


def comparison_table(results):
    lines = [
        [case.name, build] + [found[figure].text(short) if figure in found else "" for figure in COMPARED]
        for case, build, found in compared(results)
    ]
    return lines and table(["case", f"build, times {results.builds()[0]}", *COMPARED], lines)


def text(results, facts):
    parts = [
        figures_table(results, RATES),
        figures_table(results, SIZES),
        targets_table(results),
        comparison_table(results),
        "\n".join(f"- {fact}" for fact in facts),
    ]
    return "\n\n".join(part for part in parts if part)


# --- for programs -----------------------------------------------------------------------------------


def json_of(results, facts):
    return {
        "facts": facts,
        "rows": [
            {
                "case": case.name,
                "what": case.what,
                "build": build,
                "rounds": results.rounds[case.name, build],
                "figures": {figure: spread.json() for figure, spread in found.items()},
            }
            for case, build, found in rows(results)
        ],
        "targets": [
            {
                "case": target.case,
                "build": build,
                "figure": target.figure,
                "against": target.against,
                "measured": found.json(),
                "unit": target.unit(),
                "at_least" if target.is_floor else "at_most": target.bound,
                "is_met": target.is_met(found.median),
            }
            for target, build, found in judged(results)
        ],
        "compared": [
            {"case": case.name, "build": build, "times": {figure: spread.json() for figure, spread in found.items()}}
            for case, build, found in compared(results)
        ],
    }
