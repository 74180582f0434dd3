"""The rows of the comparison, and weft's targets in each row. bench/README.md describes the rows."""

import sys
from typing import NamedTuple

# The default subjects of a row about pools.
POOLS = (
    *("fiber_pool", "bare"),
    *("goroutines", "channel", "ants", "gammazero", "tunny", "pond", "conc"),
)
UNPOOLED = ("", "bare", "goroutines")  # Plain fibers and goroutines are not pools.
RSS = "peak_rss_bytes"


class Target(NamedTuple):
    """A bound for weft's ratio to a baseline, or for the value itself if the baseline is "absolute"."""

    metric: str
    bound: float
    # go | pool (the best Go pool in this metric) | unpooled (weft's bare fibers) |
    # adds_alone | absolute | epoll | go_fasthttp | hyper | actix | one_worker (weft's own figure)
    baseline: str = "go"
    most_workers: int = sys.maxsize


class Row(NamedTuple):
    shown: tuple  # The metrics in the table, the primary one first; the JSON has all of them.
    first: tuple = ()
    goal: tuple = ()
    pool: tuple = ()  # Bounds against each Go pool and against bare fibers.
    most_workers: int = sys.maxsize
    pools: tuple = ()
    fewest_workers: int = 1
    optional: tuple = ()  # Metrics that need a tool which may be missing.


def timed(metric, first, goal):
    """Returns a row with one time, and a bound for its ratio to Go in `first` and in `goal`."""
    return Row((metric,), (Target(metric, first),), (Target(metric, goal),))


PARKED = Row(
    ("bytes_per_fiber", "create_ms", "wake_ms", RSS),
    (Target("bytes_per_fiber", 4600, "absolute"), Target("create_ms", 1.5), Target("wake_ms", 1)),
    (Target("bytes_per_fiber", 4400, "absolute"), Target("create_ms", 1), Target("wake_ms", 0.5)),
)
LATENCY = Row(
    ("p50_us", "p99_us", "p999_us", "cpu_ms"),
    (Target("p50_us", 1), Target("p99_us", 1)),
    (Target("p50_us", 1), Target("p99_us", 1)),
)
# The slowest fiber must have at least 0.85 of the median's turns.
FAIR = Row(
    ("median_by_slowest", "fastest_by_median", "gap_p99_us", "gap_p50_us", "median_turns"),
    (Target("median_by_slowest", 1 / 0.85, "absolute"),),
    (Target("median_by_slowest", 1 / 0.85, "absolute"), Target("gap_p99_us", 1)),
)
# Fibers that only sleep.
LIGHT = Row(
    ("cpu_percent", "switches_per_second", "late_p50_us", "late_p99_us"),
    (Target("cpu_percent", 1.5),),
    (Target("cpu_percent", 1), Target("late_p50_us", 1), Target("late_p99_us", 1)),
)
SPAWNED = ("spawned_p50_us", "spawned_p99_us", "spawned_p999_us")
SLEEPERS = Row(("ms", "cpu_ms", RSS), (Target("ms", 0.8),), (Target("ms", 0.25),))


def suite(metric, *more, shown=(), pools=POOLS):
    """Returns a row that requires weft to be as good as each Go pool in time and in memory."""
    targets = (Target(metric, 1, "pool"), Target(RSS, 1, "pool"), *more)
    return Row((metric, *shown, RSS), targets, targets, targets, pools=pools)


def trivial(metric, pools=POOLS):
    """Does the same for empty tasks, and also limits the pool to 1.5 times the cost of bare fibers."""
    return suite(metric, Target(metric, 1.5, "unpooled"), pools=pools)


def rounds(row, first, goal):
    """Returns the row with separate bounds for `first` and `goal`."""
    return row._replace(first=(first,), goal=(goal,))


def pooled(row):
    metric = row.shown[0]
    return rounds(row, Target(metric, 0.8, "pool"), Target(metric, 0.4, "pool"))


# Among Go's pools, only conc has loops and a stream.
CONC = ("fiber_pool", "bare", "goroutines", "conc")

ROWS = {
    "W1": timed("ns_per_fiber", 0.25, 0.12),
    "W1b_adds": Row(
        ("ms", RSS),
        (Target("ms", 0.6), Target(RSS, 0.8)),
        (Target("ms", 1.15, "adds_alone"), Target(RSS, 0.5)),
    ),
    "W1b_empty": Row(("ms", RSS)),
    "W2": timed("ns_per_switch", 0.35, 0.12)._replace(most_workers=1),
    "W2_no_stacks": Row(
        ("by_alone", "ns_per_switch", "alone_ns"),
        (Target("by_alone", 2, "absolute"),),
        (Target("by_alone", 2, "absolute"),),
        most_workers=2,
    ),
    "W3_pingpong": timed("ns_per_round_trip", 0.5, 0.2),
    "W3_buffered": timed("ns_per_item", 1, 0.5),
    "W4": timed("ns_per_op", 1.2, 0.8),
    "W5": Row(("ms", RSS), (Target("ms", 0.4),), (Target("ms", 0.12), Target(RSS, 1))),
    "W6_100k": PARKED,
    "W6_1m": PARKED,
    "W7_100k": SLEEPERS,
    "W7_1m": SLEEPERS,
    "W7b": timed("ns_per_deadline", 1, 1),
    "W8a": pooled(trivial("us_per_batch")),
    "W8b": rounds(
        suite("ms"), Target("ms", 1, "pool"), Target("ms", 1.15, "adds_alone", most_workers=1)
    ),
    "W8c": pooled(suite("ms")),
    "W8d_1": pooled(trivial("ns_per_task")),
    "W8d_8": pooled(trivial("ns_per_task")),
    "W10": timed("ms", 0.5, 0.12),
    "W11_idle": LATENCY,
    "W11_busy": LATENCY._replace(fewest_workers=2, most_workers=2),
    "W11_mixed": LATENCY._replace(shown=(*LATENCY.shown[:-1], *SPAWNED, LATENCY.shown[-1])),
    "W12_ready": timed("ns_per_select", 1, 1),
    "W12_becomes_ready": timed("ns_per_select", 1, 1),
    **{f"W13_{crowd}": FAIR for crowd in ("100", "1k", "4k", "10k")},
    **{f"W13_{waker}_1k": FAIR for waker in ("timer", "channel", "thread", "socket")},
    "W14_ticker": LIGHT,
    "W14_sleepers": LIGHT,
    "P_timing": suite("overshoot_ms", shown=("first_ms", "average_ms", "total_ms", "most_wip")),
    "P_submit": suite("ns_per_submit"),
    "P_submitters": suite("ns_per_submit"),
    "P_shards": suite("ms"),
    **{
        f"P_grid_{shape}_{task}": row("ms")
        for shape in ("1x1m", "100x10k", "1kx1k", "10kx100", "1mx1")
        for task, row in (("sleep", suite), ("trivial", trivial))
    },
    "P_start": suite("ns_per_pool"),
    "P_task": trivial("ns_per_task"),
    "P_stream": trivial("ns_per_task", pools=CONC),
    **{
        f"P_each_{count}": trivial("ns_per_call", pools=CONC)
        for count in (0, 1, 10, 100, 1_000, 10_000, 100_000)
    },
    "P_round_trip": trivial("ns_per_call", pools=(*POOLS, "function_pool")),
}


def served(baseline, first, goal):
    """Returns a row of a server under load. It compares processor time: the client limits the rate."""
    metric = "cpu_us_per_request"
    return Row(
        (metric, "requests_per_second", "p50_us", "p99_us", RSS),
        (Target(metric, first, baseline, most_workers=1),),
        (Target(metric, goal, baseline, most_workers=1),),
    )


def http(goal, *more):
    """Returns a row for a complete HTTP server, with a bound for the 99th percentile."""
    metric = "cpu_us_per_request"
    row = served("go_fasthttp", 1, goal)
    goals = (Target(metric, goal, "go_fasthttp", most_workers=2), Target("p99_us", 1, "go_fasthttp"))
    return row._replace(goal=(*goals, *more))


# In a closed loop, for every number of workers.
RUST = tuple(Target("cpu_us_per_request", 1, rival) for rival in ("hyper", "actix"))


def light():
    """Returns a row with a fixed rate that one worker can serve: more workers must not cost much more."""
    metric = "cpu_us_per_request"
    calls, wakes = "system_calls_per_request", "wakes_per_request"
    goals = (
        *(Target(name, 1, "hyper") for name in (metric, "p50_us", "p99_us")),
        Target(metric, 1.15, "one_worker"),
        Target(calls, 3.5, "absolute"),
        Target(calls, 1.2, "one_worker"),
        Target(wakes, 0.2, "absolute"),
    )
    shown = (metric, calls, wakes, "switches_per_request", "p50_us", "p99_us",
             "client_late_p50_us", "client_late_p99_us")
    return Row(shown, goals[:1], goals, optional=(calls, wakes))


# Rows of bench/compare_net.
NET_ROWS = {
    "W9_echo_64": served("epoll", 1.25, 1.05),
    "W9_echo_512": served("epoll", 1.25, 1.05),
    "W9_http_64": http(0.75, *RUST),
    "W9_http_512": http(0.75, *RUST),
    "W9_http_4000": http(0.75),
    "W9_connect_64": http(0.8),
    "W9_tls_64": served("go_fasthttp", 1, 1),
    **{f"W15_light_{rate}": light() for rate in (1_000, 2_000, 10_000, 20_000)},
}
ALL_ROWS = ROWS | NET_ROWS
