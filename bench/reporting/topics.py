"""The topics of docs/benchmarks.md, in order, with a title for each row."""

from typing import NamedTuple


class Topic(NamedTuple):
    heading: str
    titles: dict  # By the row's name; a name that ends with * matches all names with that beginning.

    def slug(self):
        return self.heading.lower().replace("'", "").replace(",", "").replace("-", "_").replace(" ", "_")


TOPICS = (
    Topic("Fibers", {
        "W1": "Spawn, run and end a fiber, in batches of 100",
        "W1b_empty": "A million empty fibers from one loop",
        "W1b_adds": "A million fibers that add to one counter",
        "W2": "Switch to another fiber",
        "W2_no_stacks": "Switch while 50 000 fibers wait for a stack, divided by a switch without them",
        "W10": "fib(27) with fork and join",
        "W5": "Skynet: a tree with a million leaves",
        "W6_100k": "Memory per fiber, 100 000 parked fibers",
        "W6_1m": "Memory per fiber, a million parked fibers",
    }),
    Topic("Channels, selects and locks", {
        "W3_pingpong": "Round trip over two unbuffered channels",
        "W3_buffered": "An item through a channel of capacity 128",
        "W12_ready": "A select whose cases are all ready",
        "W12_becomes_ready": "A select that must wait",
        "W4": "Lock and unlock a mutex that 8 fibers use",
    }),
    Topic("Time and wake-ups", {
        "W7_100k": "100 000 fibers that sleep 10 ms ten times",
        "W7_1m": "A million fibers that sleep 10 ms",
        "W7b": "A wait with a deadline that does not pass",
        "W11_idle": "Wake a fiber of an idle runtime, median",
        "W11_busy": "Wake a fiber of a busy runtime, median",
        "W11_mixed": "Start delay with short and long fibers, median",
        "W13_100": "Turns per fiber, median / slowest: 100 that yield",
        "W13_1k": "Turns per fiber, median / slowest: 1 000 that yield",
        "W13_4k": "Turns per fiber, median / slowest: 4 000 that yield",
        "W13_10k": "Turns per fiber, median / slowest: 10 000 that yield",
        "W13_timer_1k": "Turns per fiber, median / slowest: 1 000 with timers",
        "W13_channel_1k": "Turns per fiber, median / slowest: 1 000 on a channel",
        "W13_thread_1k": "Turns per fiber, median / slowest: 1 000 woken by a thread",
        "W13_socket_1k": "Turns per fiber, median / slowest: 1 000 with sockets",
        "W14_ticker": "Processor time of a 1 ms ticker",
        "W14_sleepers": "Processor time of 100 fibers that sleep 10 ms",
    }),
    Topic("Pools", {
        "W8a": "A batch of 100 empty tasks, pool of 5",
        "W8b": "A million tasks that add to one counter",
        "W8c": "A million tasks that sleep 10 ms",
        "W8d_1": "An empty task, one submitter",
        "W8d_8": "An empty task, eight submitters",
    }),
    Topic("Benchmarks of Go's pools", {
        "P_task": "An empty task, including the pool's construction",
        "P_start": "Create a pool, run a task, destroy the pool",
        "P_stream": "A task of an ordered stream",
        "P_round_trip": "A call that waits for its task",
        "P_each_*": "A loop over n elements, n = {}",
        "P_submit": "Submit to a pool of 50 000, one submitter",
        "P_submitters": "Submit to a pool of 50 000, one per worker",
        "P_shards": "A million sleeping tasks, ten pools",
        "P_timing": "100 jobs of 100 ms on 5 workers",
        "P_grid_*": "Submitters x tasks each: {}",
    }),
    Topic("Servers", {
        "W9_echo_*": "Echo, {} connections",
        "W9_http_*": "HTTP, {} connections",
        "W9_connect_*": "HTTP, a new connection for each request, {}",
        "W9_tls_*": "HTTPS, {} connections",
        "W15_light_*": "HTTP at {} requests a second",
    }),
)


def title_of(row):
    """Returns the row's title, or None if it has none."""
    for topic in TOPICS:
        for name, title in topic.titles.items():
            if name == row:
                return title
            if name.endswith("*") and row.startswith(name[:-1]):
                return title.format(row.removeprefix(name[:-1]).replace("_", ", "))
    return None


def rows_of(topic, rows):
    """Yields the rows of a topic, in the order of its titles."""
    for name in topic.titles:
        for row in rows:
            if name == row or name.endswith("*") and row.startswith(name[:-1]):
                yield row
