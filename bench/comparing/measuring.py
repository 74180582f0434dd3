"""Runs the programs: a new process for each measurement; the contenders of a row alternate."""

import json
import pathlib
import statistics
import subprocess
from typing import NamedTuple

from comparing.results import add_ratios, summary
from comparing.rows import ROWS
from programs import PROGRAMS, Unavailable, last_line

EXIT_REFUSED = 3


class Subject(NamedTuple):
    name: str
    program: pathlib.Path
    workloads: tuple
    pools: tuple


class Contender(NamedTuple):
    """One line of the table: a subject, and one of its pools if the workload is about pools."""

    subject: Subject
    pool: str

    def label(self):
        return f"{self.subject.name}/{self.pool}" if self.pool else self.subject.name


class Run:
    """The results of one invocation of the script so far."""

    def __init__(self, options):
        self.options = options
        self.subjects = []
        self.notes = []  # Skipped and refused combinations, which are not failures.
        self.failures = []  # Crashes, timeouts and wrong output.
        self.results = []
        self.adds_alone_ms = {}  # By row and workers: the lower bound for some goals.

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)
            print(f"skipped: {text}", flush=True)

    def fail(self, text):
        self.failures.append(text)
        print(f"failed: {text}", flush=True)


def find_subject(run, name):
    program = PROGRAMS[name](run.options.build_dir)
    listed = subprocess.run(
        [program, "--list"], capture_output=True, text=True, timeout=60, check=False
    )
    if listed.returncode != 0:
        raise Unavailable(f"its --list failed: {last_line(listed.stderr)}")
    line = json.loads(listed.stdout)
    for pool, reason in line.get("absent", {}).items():
        run.note(f"{name}/{pool}: {reason}")
    return Subject(name, program, tuple(line["workloads"]), tuple(line["pools"]))


def find_subjects(run):
    (run.options.build_dir / "bench" / "rivals").mkdir(parents=True, exist_ok=True)
    for name in run.options.subjects:
        try:
            run.subjects.append(find_subject(run, name))
        except Unavailable as reason:
            run.note(f"{name}: {reason}")


def measure(run, contender, workload, workers):
    """Runs one new process. Returns its metrics, or prints the reason and returns None."""
    command = [contender.subject.program, workload, "--workers", str(workers)]
    command += ["--scale", str(run.options.scale)]
    command += ["--pool", contender.pool] if contender.pool else []
    what = f"{contender.label()}: {workload}, workers {workers}"
    limit = run.options.timeout
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return run.fail(f"{what}: no result after {limit:g} s")
    if done.returncode == EXIT_REFUSED:
        return run.note(f"{what}: {last_line(done.stderr)}")
    if done.returncode != 0:
        return run.fail(f"{what}: exit code {done.returncode}: {last_line(done.stderr)}")
    try:
        return json.loads(done.stdout)["metrics"]
    except (ValueError, KeyError):
        return run.fail(f"{what}: its output is not the required line of JSON")


def contenders_of(run, workload):
    found = []
    for subject in run.subjects:
        if workload not in subject.workloads:
            run.note(f"{subject.name}: {workload}: not among its workloads")
        elif ROWS[workload].pools and subject.pools:
            asked = [pool for pool in subject.pools if pool in ROWS[workload].pools]
            found += [Contender(subject, pool) for pool in asked]
        else:
            found.append(Contender(subject, ""))
    return found


def adds_alone_contender(run, workload):
    """Returns the Go program, whose adds_alone is the plain loop that bounds W1b_adds and W8b."""
    targets = getattr(ROWS[workload], run.options.targets) if run.options.targets else ()
    if not any(target.baseline == "adds_alone" for target in targets):
        return None
    return next((Contender(s, "") for s in run.subjects if s.name == "go"), None)


def run_row(run, workload, workers):
    """Runs all repetitions of a row. A contender that fails once does not run again."""
    values = {contender: {} for contender in contenders_of(run, workload)}
    alive = list(values)
    floor, floor_times = adds_alone_contender(run, workload), []
    for _ in range(run.options.reps):
        if floor and (metrics := measure(run, floor, "adds_alone", 1)):
            floor_times.append(metrics["ms"])
        for contender in list(alive):
            metrics = measure(run, contender, workload, workers)
            if metrics is None:
                alive.remove(contender)
                continue
            for metric, value in metrics.items():
                values[contender].setdefault(metric, []).append(value)
    results = [
        result_of(contender, workload, workers, metrics)
        for contender, metrics in values.items()
        if metrics
    ]
    add_ratios(results)
    run.results += results
    if floor_times:
        run.adds_alone_ms[f"{workload}, workers {workers}"] = statistics.median(floor_times)
    return results


def result_of(contender, workload, workers, metrics):
    return {
        "workload": workload,
        "workers": workers,
        "subject": contender.subject.name,
        "pool": contender.pool,
        "metrics": {name: summary(values) for name, values in metrics.items()},
    }
