"""What one operation of each row is, how many of them a run does, and what each must do."""

from typing import NamedTuple


class Counted(NamedTuple):
    operation: str
    scales: tuple  # Two: the difference of the runs leaves the start and the end out.
    operations: object  # From a scale to how many there are.
    budget: tuple  # Of one operation: what cannot be left out, and in about how many instructions.


def scaled(full, scale):
    return max(1, int(full * scale))


def warmed(full):
    """The rows in ns do a twentieth more, before they look at the clock."""
    return lambda scale: scaled(full, scale) + max(1, scaled(full, scale) // 20)


def flat(full, each=1):
    return lambda scale: scaled(full, scale) * each


def batches(full, each):
    return lambda scale: warmed(full)(scale) * each


def leaves(scale):
    count = 1
    while count * 10 <= scaled(1_000_000, scale):
        count *= 10
    return count


def forks(scale):
    """Calls of fib(n) that spawn: all but the leaves."""
    n = 27
    while scale < 0.7 and n > 2:
        scale /= 0.618
        n -= 1
    a, b = 0, 1
    for _ in range(n + 1):
        a, b = b, a + b
    return a - 1


# The parts that rows have in common. A record is written where the worker's last one ended, a queue
# is an array with two counters, a lock is one exchange and one store.
SPAWN = (
    ("the closure into a record from the worker's free list", 12),
    ("into the queue: is there room, a slot, the end moved", 8),
    ("does anybody sleep who should help?", 3),
    ("out of the queue: is there one, a slot, the beginning moved", 8),
    ("bound to the stack that has just become free, called", 10),
    ("ends: the record back to the free list", 6),
    ("counted when it is spawned, when it runs, when it ends", 8),
)
DONE = ("the wait group's `done`: one atomic subtraction", 4)
LOOP = ("the caller's loop", 5)
SWITCH = ("a switch: eight registers and the stack pointer out and in", 20)
PARK = (
    ("a waiter on the own stack, linked in under the channel's lock", 12),
    ("the next fiber out of the queue or the slot", 10),
    SWITCH,
    ("the lock is released on the other side", 4),
)
WAKE = ("the other side takes the waiter out, hands the value over, puts it next in line", 18)
CLOCK = ("the clock is read", 25)
SLEEP = (
    CLOCK,
    ("into the timers, at the place of its deadline", 12),
    ("the next fiber out of the queue", 10),
    SWITCH,
    ("expires: out of the timers and into the queue", 16),
)
POOL_TASK = (
    ("submit: lock, is there room, the closure into a place, unlock", 20),
    ("a worker takes it: lock, the closure out, unlock", 16),
    ("the call", 5),
    ("counted as submitted, as run", 6),
    DONE,
    LOOP,
)


def times(count, steps):
    return tuple((f"{count:g} x {what}", round(count * cost)) for what, cost in steps)


COUNTED = {
    "W1": Counted(
        "a fiber is spawned, runs, ends", (0.01, 0.03), batches(20_000, 100), (*SPAWN, DONE, LOOP)
    ),
    "W1b_empty": Counted(
        *("a fiber is spawned, runs, ends", (0.02, 0.06), flat(1_000_000)),
        (*SPAWN, DONE, LOOP, ("a new record, because none is free yet", 8)),
    ),
    "W2": Counted(
        *("a yield", (0.002, 0.006), lambda scale: 2 * warmed(5_000_000)(scale)),
        (("into the queue", 8), ("the next out of the queue", 10), SWITCH, LOOP),
    ),
    "W3_pingpong": Counted(
        *("a round trip", (0.01, 0.03), warmed(1_000_000)),
        (*times(2, PARK), *times(2, (WAKE,)), *times(4, (("a lock", 4),)), LOOP),
    ),
    "W3_buffered": Counted(
        *("an item", (0.004, 0.012), warmed(5_000_000)),
        (("send: lock, is there room, a place, unlock", 16),)
        + (("receive: lock, is there one, a place, unlock", 16), LOOP),
    ),
    "W4": Counted(
        *("lock, increment, unlock", (0.01, 0.03), lambda s: 8 * warmed(500_000)(s)),
        (("lock: a compare-exchange", 4), ("the increment", 1), ("unlock: another", 4))
        + (("the loop", 2),),
    ),
    "W5": Counted(
        *("a leaf, with its part of the inner nodes", (0.01, 0.1), leaves),
        (*times(1.11, SPAWN), *times(1.11, (*PARK, WAKE, ("a lock", 4), LOOP))),
    ),
    "W6_100k": Counted(
        *("a fiber is created, parks, is woken, ends", (0.1, 0.3), flat(100_000)),
        (*SPAWN, ("a new stack: its part of carving and guarding many", 20), *PARK)
        + (("woken with many others: a link followed, into the queue", 14), *PARK[1:3], DONE, LOOP),
    ),
    "W7_100k": Counted("a sleep of 10 ms", (0.05, 0.15), flat(100_000, 10), (*SLEEP, LOOP)),
    "W7b": Counted(
        *("a receive with a deadline", (0.01, 0.03), warmed(1_000_000)),
        (*PARK, WAKE, ("a lock", 4), CLOCK, ("into the timers and out again", 16), LOOP),
    ),
    "W8a": Counted("a task", (0.01, 0.03), batches(20_000, 100), POOL_TASK),
    "W8b": Counted(
        *("a task of 100 adds", (0.02, 0.06), flat(1_000_000)),
        (*POOL_TASK, ("its work: 100 x an atomic add, and the loop", 400)),
    ),
    "W8c": Counted(
        *("a task that sleeps 10 ms", (0.02, 0.06), flat(1_000_000)),
        (*POOL_TASK, *SLEEP, *PARK, WAKE),
    ),
    "W8d_1": Counted("a task", (0.01, 0.03), warmed(2_000_000), POOL_TASK),
    "W8d_8": Counted("a task", (0.01, 0.03), warmed(2_000_000), POOL_TASK),
    "W10": Counted(
        *("a fork and its join, and two calls", (0.02, 0.06), forks),
        (("the closure into a record from the worker's free list", 12), ("into the queue", 8))
        + (("does anybody sleep who should help?", 3),)
        + (("the join takes the unstarted fiber back out of the queue", 8),)
        + (("is there enough of the stack left to run it in place?", 3), ("the call", 5))
        + (("the result is read, the record given back", 10), ("two calls of fib", 20)),
    ),
    "W12_ready": Counted(
        *("a select", (0.01, 0.03), warmed(2_000_000)),
        (("four cases are described", 16), ("a random one is first", 8))
        + (("lock, the value out, unlock", 16), ("its handler", 4))
        + (("the value is put back: lock, a place, unlock", 16), LOOP),
    ),
    "W12_becomes_ready": Counted(
        *("a select and the send", (0.01, 0.03), warmed(1_000_000)),
        (("four cases are described", 16), ("four locks", 16), ("four waiters linked in", 32))
        + (*PARK[1:], WAKE, ("the three others are taken out again, with their locks", 36))
        + (("the handler", 4), *times(2, (LOOP,))),
    ),
}
