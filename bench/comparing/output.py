"""Prints the table of a run, and writes its file."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

from comparing.results import best_go_pool
from comparing.rows import ALL_ROWS, RSS
from programs import cxx_tool, go_tool

BENCH = pathlib.Path(__file__).resolve().parent.parent
# The measured folders. The stored commit is the newest one that changed any of them. The newest commit
# of all may change only a document, and a later rebase of a branch may replace it.
LIBRARY = ("include", "base", "fibers", "scheduler", "sync", "runtime", "io", "files", "net", "pool",
           "libs")
COLUMNS = "{:<22} {:>2} {:<18} {:<17} {:>10} {:>10} {:>10} {:>7} {:>8}  {}"


def print_header(options):
    titles = ["workload", "n", "subject", "metric", "median", "min", "max", "/go", "/pool"]
    line = COLUMNS.format(*titles, f"targets: {options.targets}" if options.targets else "")
    print(line.rstrip())


def figure(value):
    """Formats a value with four digits, or as a whole number from 1000. A fifth digit would be noise."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def verdicts(figures):
    return "; ".join(
        f"{target['baseline']} <= {target['bound']:g} ({figure(target['compared']) or '-'}): "
        f"{target['met']}"
        for target in figures.get("targets", ())
    )


def print_row(run, results):
    for result in results:
        who = f"{result['subject']}/{result['pool']}".rstrip("/")
        for metric in ALL_ROWS[result["workload"]].shown:
            if metric not in result["metrics"]:
                if metric not in ALL_ROWS[result["workload"]].optional:
                    run.fail(f"{who}: {result['workload']}: the metric {metric} is missing")
                continue
            figures = result["metrics"][metric]
            unit, name = (1 << 20, "peak_rss_mib") if metric == RSS else (1, metric)
            cells = [figure(figures[key] / unit) for key in ("median", "min", "max")]
            ratios = [figure(figures.get(k)) for k in ("ratio_to_go", "ratio_to_best_go_pool")]
            line = [result["workload"], result["workers"], who, name, *cells, *ratios]
            print(COLUMNS.format(*line, verdicts(figures)).rstrip())
    if results and ALL_ROWS[results[0]["workload"]].pools:
        row = ALL_ROWS[results[0]["workload"]]
        best = [(metric, best_go_pool(results, metric)) for metric in (row.shown[0], RSS)]
        text = ", ".join(f"{metric} {pool['pool'] if pool else '-'}" for metric, pool in best)
        print(f"{'':22}    best Go pool: {text}")
    sys.stdout.flush()


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def weft_build(build_dir):
    """Returns weft's build options from meson, since debug builds are slow. `compiler` needs meson 1.4."""
    info = build_dir / "meson-info"
    wanted = ("buildtype", "optimization", "b_ndebug", "b_lto", "b_sanitize", "context")
    found = {}
    try:
        options = json.loads((info / "intro-buildoptions.json").read_text())
        found |= {o["name"]: o["value"] for o in options if o["name"] in wanted}
        compilers = json.loads((info / "intro-compilers.json").read_text())
        found["compiler"] = compilers["host"]["cpp"]["full_version"]
    except (OSError, ValueError, KeyError):
        pass
    return found


def origin(build_dir):
    """Returns the time, the commit, the machine and the compilers of a run."""
    git = ("git", "-C", str(BENCH.parent))
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": output_of(*git, "log", "-1", "--format=%H", "--", *LIBRARY),
        "uncommitted_changes": bool(output_of(*git, "status", "--porcelain")),
        "machine": {
            "cpu": cpu_model(),
            "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
        },
        "compilers": {
            "c++": output_of(cxx_tool() or "g++", "--version").partition("\n")[0],
            "go": output_of(go_tool() or "go", "version"),
        },
        "weft_build": weft_build(build_dir),
    }


def circumstances(options):
    """Returns the conditions of a run. Call it first, because the source tree may change during a run."""
    return {
        **origin(options.build_dir),
        "remark": options.remark,
        "repetitions": options.reps,
        "scale": options.scale,
        "targets": options.targets,
    }


def report(run, began):
    return {
        **began,
        "adds_alone_ms": run.adds_alone_ms,
        "skipped": run.notes,
        "failed": run.failures,
        "results": run.results,
    }


def write(path, content):
    """Writes JSON with one line for each result, so a stored file stays small and easy to compare."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
    results = ",\n".join(f"  {json.dumps(result)}" for result in content["results"])
    lines[-1] = f' "results": [\n{results}\n ]'
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
