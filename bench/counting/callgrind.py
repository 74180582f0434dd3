"""One run of weft_workloads under callgrind: what it executed and missed, by function."""

import collections
import pathlib
import re
import subprocess
import tempfile

# That of one core of the machine on which the other figures were taken. The last level is the
# core's own second one: what misses it goes to a cache that others use, or to memory.
CACHES = ("--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64")
EVENTS = ("instructions", "d1_misses", "ll_misses")
TIMEOUT_S = 600
# Valgrind 3.19 sometimes fails this assertion of its own when a signal, here of the monitor, comes
# near a switch of stacks.
ITS_OWN_FAILURE = "vgCallgrind_post_signal"
ATTEMPTS = 5


class CountingFailed(Exception):
    """Says in one sentence why there is no count."""


def count(program, workload, scale):
    """By function, the events of the whole process."""
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
    """What each function executed itself. The inclusive costs are of no use: callgrind takes a
    switch of stacks for calls and returns. The sum of the selfs is what lackey counts, too."""
    found = collections.defaultdict(lambda: [0] * len(EVENTS))
    names, function, is_call = [], None, False
    for line in text.splitlines():
        if line.startswith("events: "):
            names = line.split()[1:]
        elif line.startswith("fn="):
            function = short_name(line[3:])
        elif line.startswith("calls="):
            is_call = True  # The next line is what the callee did.
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
    """Without arguments of any kind, and without the level of a recursion."""
    name = re.sub(r"'\d+$| \[clone [^]]*\]|\[abi:\w+\]|\(anonymous namespace\)::", "", name)
    for brackets in (r"<[^<>]*>", r"\([^()]*\)(?: const)?"):
        while (shorter := re.sub(brackets, "", name)) != name:
            name = shorter
    return name.split(" ")[-1]
