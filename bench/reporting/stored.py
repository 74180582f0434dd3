"""A stored run, by row and contender, and the words for what is in it."""

import fnmatch
import json
from typing import NamedTuple

from comparing.results import best_go_pool
from comparing.rows import ALL_ROWS, RSS

MIB = 1 << 20


def figure(value):
    """Four digits, because a fifth is noise."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def ratio(value):
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def unit_of(metric):
    return MIB if metric == RSS else 1


def name_of(metric):
    return "peak RSS, MiB" if metric == RSS else metric.replace("_", " ")


def shown_figure(metric, figures, key="median"):
    return figure(figures[key] / unit_of(metric))


def targets_of(figures):
    """Runs from before a metric could have several bounds have one `target`."""
    return figures.get("targets") or [t for t in [figures.get("target")] if t]


class Missed(NamedTuple):
    result: dict
    metric: str
    target: dict


class StoredRuns:
    """One run, or several: a row that was run again is taken from the last run that has it."""

    def __init__(self, paths, readme):
        self.contents = [json.loads(path.read_text()) for path in paths]
        self.described = dict(descriptions(readme))
        last = {}
        for content in self.contents:
            last |= {result["workload"]: content for result in content["results"]}
        self.rows = list(last)
        self.results = [r for row in last for r in last[row]["results"] if r["workload"] == row]
        self._last = last

    def rows_of(self, content):
        """Those that are taken from this run."""
        return [row for row in self.rows if self._last[row] is content]

    def notes(self, key):
        """What was skipped, or has failed, in the rows that are shown."""
        for content in self.contents:
            replaced = [row for row in self.rows if self._last[row] is not content]
            for text in content[key]:
                if not any(f": {row}, workers" in text for row in replaced):
                    yield text

    def of(self, row, workers=None):
        return [
            r
            for r in self.results
            if r["workload"] == row and workers in (None, r["workers"])
        ]

    def workers_of(self, row):
        return sorted({result["workers"] for result in self.of(row)})

    def shown(self, row):
        """The metrics of a row; all, the primary one being unknown, if the row is gone."""
        if row in ALL_ROWS:
            present = self.of(row)[0]["metrics"]
            return [metric for metric in ALL_ROWS[row].shown if metric in present]
        return sorted(self.of(row)[0]["metrics"])

    def about(self, row):
        """What bench/README.md says of the row."""
        for names, text in self.described.items():
            if any(fnmatch.fnmatch(row, name) for name in names):
                return text
        return ""

    def weft(self, row, workers):
        """weft's own contender: the pool where there are several."""
        found = [r for r in self.of(row, workers) if r["subject"] == "weft"]
        return next((r for r in found if r["pool"] != "bare"), None)

    def best_go(self, row, workers, metric):
        """The contender that weft stands against: Go's best pool, or Go where no pool is asked."""
        results = self.of(row, workers)
        plain = (r for r in results if r["subject"] == "go" and metric in r["metrics"])
        return best_go_pool(results, metric) or next(plain, None)

    def best_cxx(self, row, workers, metric):
        """Of the other C++ libraries, the one that is best in this metric."""
        others = [r for r in self.of(row, workers) if not r["subject"].startswith(("weft", "go"))]
        others = [r for r in others if metric in r["metrics"]]
        return min(others, key=lambda r: r["metrics"][metric]["median"], default=None)

    @staticmethod
    def ratio_between(ours, other, metric):
        median = other["metrics"][metric]["median"] if other else 0
        return ours["metrics"][metric]["median"] / median if median else None

    def has_pools(self):
        return any(result["pool"] for result in self.results)

    def metrics_with_bounds(self, row):
        """The primary metric, and others that weft is judged by."""
        found = [self.shown(row)[0]]
        for result in self.of(row):
            found += [m for m, figures in result["metrics"].items() if targets_of(figures)]
        return list(dict.fromkeys(found))

    def judged(self):
        """Each bound that weft was judged by, in the order of the rows. Old runs judged bare fibers
        where a pool is asked, too."""
        for result in (r for r in self.results if r["pool"] != "bare"):
            for metric, figures in result["metrics"].items():
                for target in targets_of(figures):
                    yield Missed(result, metric, target)


def label(result):
    return f"{result['subject']}/{result['pool']}".rstrip("/")


def descriptions(readme):
    """The table of rows: names, which may be patterns, and what they measure."""
    for line in readme.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0].startswith(("W", "P_")):
            yield tuple(name.strip() for name in cells[0].split(",")), cells[1]
