"""Defines the operation of each row, the operations of a run, and the necessary steps of one."""

from typing import NamedTuple


class Counted(NamedTuple):
    operation: str
    scales: tuple  # Two: the difference of the runs excludes the start and the end.
    operations: object  # Maps a scale to the number of operations.
    budget: tuple  # The necessary steps of an operation, each with its estimated instructions.


def scaled(full, scale):
    return max(1, int(full * scale))


def warmed(full):
    """Rows in ns run a twentieth more operations to warm up, before they read the clock."""
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
    """Returns the number of fib() calls that spawn: all calls except the leaves."""
    n = 27
    while scale < 0.7 and n > 2:
        scale /= 0.618
        n -= 1
    a, b = 0, 1
    for _ in range(n + 1):
        a, b = b, a + b
    return a - 1


# The steps that rows have in common. The estimates assume that a worker reuses its last record, that a
# queue is an array with two counters, and that a lock takes one exchange and one store.
SPAWN = (
    ("move the closure into a record from the worker's free list", 12),
    ("push: check the room, write the slot, advance the end", 8),
    ("check whether a sleeping worker should help", 3),
    ("pop: check for an entry, read the slot, advance the beginning", 8),
    ("bind the fiber to the stack that has just become free, and call it", 10),
    ("end: return the record to the free list", 6),
    ("count the spawn, the run and the end", 8),
)
DONE = ("the wait group's `done`: one atomic subtraction", 4)
LOOP = ("the caller's loop", 5)
SWITCH = ("a switch: save and restore eight registers and the stack pointer", 20)
PARK = (
    ("link a waiter on the fiber's stack under the channel's lock", 12),
    ("take the next fiber from the queue or the slot", 10),
    SWITCH,
    ("release the lock after the switch", 4),
)
WAKE = ("unlink the waiter, pass the value, and make the fiber run next", 18)
CLOCK = ("read the clock", 25)
SLEEP = (
    CLOCK,
    ("insert into the timers at the deadline", 12),
    ("take the next fiber from the queue", 10),
    SWITCH,
    ("expire: move the fiber from the timers to the queue", 16),
)
POOL_TASK = (
    ("submit: lock, check the room, store the closure, unlock", 20),
    ("take the task: lock, move the closure out, unlock", 16),
    ("the call", 5),
    ("count the submission and the run", 6),
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
        (*SPAWN, DONE, LOOP, ("create a record, because none is free yet", 8)),
    ),
    "W2": Counted(
        *("a yield", (0.002, 0.006), lambda scale: 2 * warmed(5_000_000)(scale)),
        (("push", 8), ("take the next fiber from the queue", 10), SWITCH, LOOP),
    ),
    "W3_pingpong": Counted(
        *("a round trip", (0.01, 0.03), warmed(1_000_000)),
        (*times(2, PARK), *times(2, (WAKE,)), *times(4, (("a lock", 4),)), LOOP),
    ),
    "W3_buffered": Counted(
        *("an item", (0.004, 0.012), warmed(5_000_000)),
        (("send: lock, check the room, write the slot, unlock", 16),)
        + (("receive: lock, check for an item, read the slot, unlock", 16), LOOP),
    ),
    "W4": Counted(
        *("lock, increment, unlock", (0.01, 0.03), lambda s: 8 * warmed(500_000)(s)),
        (("lock: a compare-exchange", 4), ("the increment", 1), ("unlock: a second compare-exchange", 4))
        + (("the loop", 2),),
    ),
    "W5": Counted(
        *("a leaf, with its share of the inner nodes", (0.01, 0.1), leaves),
        (*times(1.11, SPAWN), *times(1.11, (*PARK, WAKE, ("a lock", 4), LOOP))),
    ),
    "W6_100k": Counted(
        *("a fiber is created, parks, is woken, ends", (0.1, 0.3), flat(100_000)),
        (*SPAWN, ("a new stack: its share of allocating and guarding many stacks", 20), *PARK)
        + (("wake one of many fibers: follow a link, push", 14), *PARK[1:3], DONE, LOOP),
    ),
    "W7_100k": Counted("a sleep of 10 ms", (0.05, 0.15), flat(100_000, 10), (*SLEEP, LOOP)),
    "W7b": Counted(
        *("a receive with a deadline", (0.01, 0.03), warmed(1_000_000)),
        (*PARK, WAKE, ("a lock", 4), CLOCK, ("insert into the timers and remove", 16), LOOP),
    ),
    "W8a": Counted("a task", (0.01, 0.03), batches(20_000, 100), POOL_TASK),
    "W8b": Counted(
        *("a task of 100 adds", (0.02, 0.06), flat(1_000_000)),
        (*POOL_TASK, ("the work: a loop with 100 atomic adds", 400)),
    ),
    "W8c": Counted(
        *("a task that sleeps 10 ms", (0.02, 0.06), flat(1_000_000)),
        (*POOL_TASK, *SLEEP, *PARK, WAKE),
    ),
    "W8d_1": Counted("a task", (0.01, 0.03), warmed(2_000_000), POOL_TASK),
    "W8d_8": Counted("a task", (0.01, 0.03), warmed(2_000_000), POOL_TASK),
    "W10": Counted(
        *("a fork and its join, and two calls", (0.02, 0.06), forks),
        (("move the closure into a record from the worker's free list", 12), ("push", 8))
        + (("check whether a sleeping worker should help", 3),)
        + (("join: take the unstarted fiber back from the queue", 8),)
        + (("check that the stack has room to run it in place", 3), ("the call", 5))
        + (("read the result, return the record", 10), ("two calls of fib", 20)),
    ),
    "W12_ready": Counted(
        *("a select", (0.01, 0.03), warmed(2_000_000)),
        (("describe four cases", 16), ("choose a random first case", 8))
        + (("lock, take the value, unlock", 16), ("call the handler", 4))
        + (("put the value back: lock, write the slot, unlock", 16), LOOP),
    ),
    "W12_becomes_ready": Counted(
        *("a select and the send", (0.01, 0.03), warmed(1_000_000)),
        (("describe four cases", 16), ("take four locks", 16), ("link four waiters", 32))
        + (*PARK[1:], WAKE, ("unlink the three other waiters under their locks", 36))
        + (("call the handler", 4), *times(2, (LOOP,))),
    ),
}
