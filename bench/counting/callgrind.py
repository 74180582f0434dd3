"""Runs weft_workloads under callgrind, and returns its instructions and cache misses by function."""

import collections
import pathlib
import re
import subprocess
import tempfile

# The caches of one core of the machine of the other figures. The simulated last level is the core's
# second level: its misses go to a cache that cores share, or to memory.
CACHES = ("--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64")
EVENTS = ("instructions", "d1_misses", "ll_misses")
TIMEOUT_S = 600
# Valgrind 3.19 sometimes fails this internal assertion if a signal, here from the monitor, arrives
# close to a stack switch.
ITS_OWN_FAILURE = "vgCallgrind_post_signal"
ATTEMPTS = 5


class CountingFailed(Exception):
    """Contains the reason for a missing count, in one sentence."""


def count(program, workload, scale):
    """Returns {function: events} for the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", *CACHES, "--compress-pos=no"]
        command += ["--compress-strings=no", f"--callgrind-out-file={out}"]
        command += [program, workload, "--workers", "1", "--scale", repr(scale)]
        try:
            for _ in range(ATTEMPTS):
                done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
                if ITS_OWN_FAILURE not in done.stderr:
                    break
        except FileNotFoundError as missing:
            raise CountingFailed("valgrind is not installed") from missing
        except subprocess.TimeoutExpired as late:
            raise CountingFailed(f"{workload}: no end after {TIMEOUT_S} s") from late
        if done.returncode != 0:
            raise CountingFailed(f"{workload}: {done.stderr.strip().splitlines()[-1]}")
        return by_function(out.read_text())


def by_function(text):
    """Returns each function's own events. Inclusive costs are useless, because callgrind interprets a
    stack switch as calls and returns. The sum of the own events equals lackey's count."""
    found = collections.defaultdict(lambda: [0] * len(EVENTS))
    names, function, is_call = [], None, False
    for line in text.splitlines():
        if line.startswith("events: "):
            names = line.split()[1:]
        elif line.startswith("fn="):
            function = short_name(line[3:])
        elif line.startswith("calls="):
            is_call = True  # The next line has the callee's events.
        elif line[:1].isdigit() and function is not None:
            if not is_call:
                add(found[function], dict(zip(names, map(int, line.split()[1:]))))
            is_call = False
    return dict(found)


def add(sums, costs):
    sums[0] += costs.get("Ir", 0)
    sums[1] += costs.get("D1mr", 0) + costs.get("D1mw", 0)
    sums[2] += costs.get("DLmr", 0) + costs.get("DLmw", 0)


def short_name(name):
    """Returns the name without arguments, template arguments and the level of recursion."""
    name = re.sub(r"'\d+$| \[clone [^]]*\]|\[abi:\w+\]|\(anonymous namespace\)::", "", name)
    for brackets in (r"<[^<>]*>", r"\([^()]*\)(?: const)?"):
        while (shorter := re.sub(brackets, "", name)) != name:
            name = shorter
    return name.split(" ")[-1]
