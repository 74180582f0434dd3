"""Tables of docs/benchmarks.md: a column for each number of workers, a line for each contender."""

from reporting import topics

# Metrics whose names are not their units.
UNITS = {
    "p50_us": "us",
    "overshoot_ms": "ms beyond 2 s",
    "cpu_percent": "% of one processor",
    "cpu_us_per_request": "us of processor time per request",
    "median_by_slowest": "ratio",
}
CONTENDERS = ("weft", "Go", "others")


def unit_of(metric):
    """The unit of a metric; the title of a row says of what operation its time is."""
    if metric in UNITS:
        return UNITS[metric]
    return metric[:2] if metric.startswith(("ns_per_", "us_per_")) else metric.replace("_", " ")


def figure(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def spread_of(median, low, high):
    """The larger distance of the smallest and the largest value from the median, in percent."""
    return 100 * max(high - median, median - low) / median if median else 0


def cell_of(values):
    """A median and its spread, which is left out below one percent."""
    spread = spread_of(*values)
    text = figure(values[0]) + (f" ±{spread:.0f} %" if spread >= 1 else "")
    return text.replace(" ", "&nbsp;")


def contenders(run, row, workers):
    """What each contender that the row has measured: a name, and a cell for each number of workers."""
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
    """The rows, which have this unit, as lines of a table."""
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
    """A table for each unit of the topic's rows, except rows whose names begin as these."""
    by_unit = {}
    for row in topics.rows_of(topic, run.rows):
        if without and row.startswith(without):
            continue
        by_unit.setdefault(unit_of(run.metric(row)), []).append(row)
    for unit, rows in by_unit.items():
        yield ""
        yield from table(run, rows, unit)
