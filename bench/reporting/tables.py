"""Formats the tables of docs/benchmarks.md: a column per number of workers, a line per contender."""

from reporting import topics

# Metrics whose names are not their units.
UNITS = {
    "p50_us": "us",
    "overshoot_ms": "ms in excess of 2 s",
    "cpu_percent": "% of one processor",
    "cpu_us_per_request": "us of processor time per request",
    "median_by_slowest": "ratio",
}
CONTENDERS = ("weft", "Go", "others")


def unit_of(metric):
    """Returns the unit of a metric. The title of a row names the operation."""
    if metric in UNITS:
        return UNITS[metric]
    return metric[:2] if metric.startswith(("ns_per_", "us_per_")) else metric.replace("_", " ")


def figure(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def spread_of(median, low, high):
    """Returns the larger distance of the smallest and the largest value from the median, in percent."""
    return 100 * max(high - median, median - low) / median if median else 0


def cell_of(values):
    """Formats a median and its spread; omits a spread below one percent."""
    spread = spread_of(*values)
    text = figure(values[0]) + (f" ±{spread:.0f} %" if spread >= 1 else "")
    return text.replace(" ", "&nbsp;")


def contenders(run, row, workers):
    """Yields a name and a cell per number of workers, for each contender with results in the row."""
    metric = run.metric(row)
    for kind in CONTENDERS:
        found = [run.weft(row, count) if kind == "weft" else run.best(row, count, metric, kind == "Go")
                 for count in workers]
        found = [one if one and metric in one["metrics"] else None for one in found]
        if not any(found):
            continue
        names = dict.fromkeys(one["pool"] or one["subject"] for one in found if one)
        name = kind if kind == "weft" else f"{kind}: {', '.join(names)}"
        yield name.replace(" ", "&nbsp;"), [cell_of(one["metrics"][metric]) if one else "-"
                                            for one in found]


def table(run, rows, unit):
    """Yields the lines of a table for rows with the same unit."""
    workers = sorted({count for row in rows for count in run.workers_of(row)})
    heads = [f"{count} worker{'s' if count > 1 else ''}" for count in workers]
    yield f"| {unit} | | {' | '.join(heads)} |"
    yield f"|---|---|{'---:|' * len(workers)}"
    for row in rows:
        names, columns = zip(*contenders(run, row, workers))
        cells = ["<br>".join(column) for column in zip(*columns)]
        yield (f"| {topics.title_of(row)}<br><small>{row}</small> | {'<br>'.join(names)} | "
               f"{' | '.join(cells)} |")


def tables(run, topic, *, without=()):
    """Yields a table per unit of the topic's rows, except rows whose names begin with `without`."""
    by_unit = {}
    for row in topics.rows_of(topic, run.rows):
        if without and row.startswith(without):
            continue
        by_unit.setdefault(unit_of(run.metric(row)), []).append(row)
    for unit, rows in by_unit.items():
        yield ""
        yield from table(run, rows, unit)
