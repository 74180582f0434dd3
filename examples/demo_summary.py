#!/usr/bin/env python3
"""Summarizes the results of ./demo, as a page for readers who are new to weft, and as JSON."""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics


def read_json(path):
    """Returns the content of the file, or None if the file is missing or incomplete."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def number(value):
    """Formats a number with at least three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def shown(values, unit=""):
    """Formats the median, the minimum and the maximum of a spread."""
    middle = number(values["median"])
    return f"{middle}{unit} ({number(values['least'])} .. {number(values['most'])})"


def machine():
    try:
        model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    except OSError:
        model = None
    return {
        "processor": model.group(1) if model else platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
    }


# ---- 1. Pooled against bare

POOL = "weft: FiberPool"
BARE = "weft: a fiber per task"
GOROUTINES = "Go: a goroutine per task"
GO_POOL = "Go: pool on a channel"
COMPARED = (
    (POOL, BARE, "the pool against bare fibers"),
    (BARE, GOROUTINES, "bare fibers against goroutines"),
    (POOL, GO_POOL, "the pool against Go's channel pool"),
    (GO_POOL, GOROUTINES, "Go's channel pool against goroutines"),
)


def ratios(contenders):
    for one, other, words in COMPARED:
        if one in contenders and other in contenders:
            yield {
                "what": words,
                "time": contenders[one]["ns_per_task"]["median"]
                / contenders[other]["ns_per_task"]["median"],
                "memory": contenders[one]["peak_mib"]["median"]
                / contenders[other]["peak_mib"]["median"],
            }


def pools(out):
    measured = read_json(out / "pool_versus_bare.json")
    if measured is None:
        return None, ["  no result"]
    lines, summary = [], []
    for workload in measured["workloads"]:
        ran = {c["name"]: c for c in workload["contenders"] if c["runs"]}
        if workload["name"] == "jobs":
            lines.append(f"  {workload['title']}")
            for name, contender in ran.items():
                total = spread([run["total_ms"] for run in contender["runs"]])
                most = max(run["most_at_once"] for run in contender["runs"])
                lines.append(f"    {name:24} all done after {shown(total, ' ms')}; "
                             f"at most {most} at once")
            continue
        found = list(ratios(ran))
        lines.append(f"  {workload['title']}")
        for ratio in found:
            lines.append(f"    {ratio['what'] + ':':38} {ratio['time']:5.2f} x the time, "
                         f"{ratio['memory']:5.2f} x the memory")
        summary.append({"workload": workload["name"], "ratios": found})
    return {"ratios": summary, "measured": measured}, lines


# ---- 2. The echo server


def echo(out):
    result, lines = {}, []
    titles = {"fibers": "a fiber for each connection", "pool": "a pool that refuses the rest"}
    for name, title in titles.items():
        runs = [read_json(path) for path in sorted((out / "logs").glob(f"client_{name}_*.json"))]
        runs = [run for run in runs if run]
        if not runs:
            lines.append(f"  {title}: no result")
            continue
        figures = {
            key: spread([run[key] for run in runs])
            for key in ("requests_per_second", "p50_us", "p99_us", "refusals", "errors")
        }
        requests = sum(run["requests"] for run in runs)
        refusals = sum(run["refusals"] for run in runs)
        attempts = sum(run["connections"] for run in runs)
        errors = sum(run["errors"] for run in runs)
        lines += [
            f"  {title}",
            f"    {shown(figures['requests_per_second'])} requests per second",
            f"    latency in us: median {shown(figures['p50_us'])}, "
            f"99th percentile {shown(figures['p99_us'])}",
            f"    {requests:,} requests answered, {refusals} of {attempts} connections refused, "
            f"{errors} errors",
        ]
        result[name] = {"spreads": figures, "runs": runs}
    return result, lines


# ---- 3. Digests


def seconds_of_sha256sum(path):
    """Returns the seconds at the end of the output of bash's `time`."""
    try:
        return float(path.read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def count_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def digests(out):
    logs = out / "logs"
    runs = [read_json(path) for path in sorted(logs.glob("hash_tree_*.json"))]
    others = [seconds_of_sha256sum(path) for path in sorted(logs.glob("sha256sum_*.log"))]
    # Excludes the first round of each program, which also read the files into memory.
    runs, others = runs[1:], [seconds for seconds in others[1:] if seconds]
    if not runs or not others or None in runs:
        return None, ["  no result"]
    last, own, other = runs[-1], spread([run["seconds"] for run in runs]), spread(others)
    agreed, hashed = count_lines(out / "agreed.sums"), count_lines(out / "hash_tree.sums")
    expected = count_lines(out / "sha256sum.sums")
    lines = [
        f"  {last['files']:,} files, {last['bytes'] / 1e6:,.1f} MB, {last['fibers']} fibers; "
        f"{last['unreadable']} unreadable; {last['passed_over']} links and special files "
        "passed over",
        f"  {agreed:,} of {hashed:,} digests equal those of sha256sum, "
        f"which read {expected:,} files",
        f"  {shown(own, ' s')}; sha256sum, which has one thread: {shown(other, ' s')}; "
        f"ratio {own['median'] / other['median']:.2f}",
        "  (hash_tree uses libcrypto, which uses the processor's SHA instructions if available; many "
        "builds",
        "  of sha256sum do not. So this ratio does not compare fibers with threads.)",
    ]
    result = {"agreed": agreed, "expected": expected, "seconds": own, "sha256sum_seconds": other,
              "runs": runs}
    return result, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path, help="folder with the results of ./demo")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--compiler", default="unknown")
    parser.add_argument("--folder", default="", help="folder whose files were hashed")
    asked = parser.parse_args()

    place = machine()
    parts = {"pools": pools(asked.out), "echo": echo(asked.out), "digests": digests(asked.out)}
    print("Summary")
    print(f"  machine   {place['processor']}, {place['processors']} processors, {place['system']}")
    print(f"  compiler  {asked.compiler}, release build")
    print(f"  commit    {asked.commit}")
    print("  Figures are medians of the rounds, with (minimum .. maximum). Compare the ratios, because")
    print("  times depend on the machine; the contenders of a ratio alternate. If a ratio is below 1,")
    print("  the first contender is ahead. Memory is the peak of a whole process.\n")
    print("1. Pooled against unpooled", *parts["pools"][1], sep="\n")
    print("\n2. Echo server", *parts["echo"][1], sep="\n")
    print(f"\n3. SHA-256 of {asked.folder}", *parts["digests"][1], sep="\n")

    everything = {"machine": place, "compiler": asked.compiler, "commit": asked.commit,
                  "folder": asked.folder}
    everything |= {name: result for name, (result, _) in parts.items()}
    (asked.out / "demo.json").write_text(json.dumps(everything, indent=2) + "\n")
    chart = asked.out / "pool_versus_bare.png"
    print("\nFiles")
    if chart.exists():
        print(f"  chart     {chart} (and .svg)")
    print(f"  tables    {asked.out / 'pool_versus_bare.txt'}")
    print(f"  all data  {asked.out / 'demo.json'}")


if __name__ == "__main__":
    main()
