"""The page: what was measured where, what is met and what is missed, and each row in full."""

import pathlib
import shlex

from comparing.rows import RSS
from reporting import chart
from reporting.stored import StoredRuns, label, name_of, ratio, shown_figure, unit_of

README = "bench/README.md"
MARK = "<!-- Made by: "
CHARTS = "charts"


def command(runs, title, target):
    names = " ".join(str(run) for run in runs)
    return f"bench/report {names} --title {shlex.quote(title)} --output {target}"


def make(root, runs, title, target):
    """Each file of the page with its text, by its path in the tree."""
    stored = StoredRuns([root / run for run in runs], root / README)
    charts = {name: drawn for name, drawn in drawings(stored)}
    paths = {name: f"{target.stem}_{name}.svg" for name in charts}
    lines = [
        f"{MARK}{command(runs, title, target)} -->",
        f"# {title}: what was measured",
        "",
        "Made by the command in the first line, not by hand; `tools/check_reports` compares. What",
        f"each row is, and how the programs run, is in [bench/README.md]({up(target)}{README}).",
        "",
        *run_facts(stored, runs, target),
        *how_to_read(),
        *verdicts(stored),
        *overview(stored, paths),
    ]
    for row in stored.rows:
        lines += row_section(stored, row, paths.get(row))
    lines += left_out(stored)
    made = {target: "\n".join(lines).rstrip() + "\n"}
    for name, drawn in charts.items():
        made[target.parent / CHARTS / paths[name]] = drawn
    return made


def stale_charts(root, target, made):
    """Charts of an earlier page that this one does not have."""
    folder = root / target.parent / CHARTS
    present = sorted(folder.glob(f"{target.stem}_*.svg"))
    return [path for path in present if path.relative_to(root) not in made]


def up(target):
    return "../" * (len(pathlib.PurePath(target).parts) - 1)


# ---- What was run


def run_facts(stored, runs, target):
    columns = [facts_of(stored, content) for content in stored.contents]
    links = (f"[{run.name}]({up(target)}{run})" for run in runs)
    yield f"| | {' | '.join(links)} |"
    yield "|---|" + "---|" * len(columns)
    for name in columns[0]:
        if any(column[name] for column in columns):
            yield f"| {name} | {' | '.join(column[name] for column in columns)} |"
    yield ""


def facts_of(stored, content):
    machine, build = content["machine"], content["weft_build"]
    commit = f"`{content['commit'][:12]}`"
    commit += ", with uncommitted changes" if content["uncommitted_changes"] else ""
    return {
        "rows": rows_in_words(stored, content),
        "when": content["date"],
        "weft": commit,
        "machine": f"{machine['cpu']}, {machine['cores']} processors, Linux {machine['kernel']}",
        "C++": content["compilers"]["c++"],
        "weft's build": ", ".join(f"{name} {value}" for name, value in sorted(build.items())),
        "Go": content["compilers"]["go"],
        "repetitions": f"{content['repetitions']}, the contenders of a row in turns",
        "scale": f"{content['scale']:g}",
        "bounds": content["targets"] or "none",
        "remark": content.get("remark", ""),
    }


def rows_in_words(stored, content):
    if len(stored.contents) == 1:
        return "all"
    return "all others" if content is stored.contents[0] else ", ".join(stored.rows_of(content))


def how_to_read():
    return [
        "Figures are medians, with the smallest and the largest value in parentheses. Ratios are",
        "of medians; below 1 weft is faster or smaller. `/go`: against plain goroutines. `/pool`:",
        "against the Go pool that is best in this row and metric. `/bare`: against weft's own",
        "fibers without a pool. A time is this machine's, in its mood of that hour; a ratio is",
        "worth more.",
        "",
    ]


# ---- What is met


def verdicts(stored):
    judged = list(stored.judged())
    if not judged:
        return
    yield "## Bounds"
    yield ""
    words = [j.target["met"] for j in judged]
    counts = {word: words.count(word) for word in ("yes", "no", "unknown")}
    yield f"Of {len(judged)} bounds {counts['yes']} are met and {counts['no']} are missed" + (
        f"; {counts['unknown']} could not be judged." if counts["unknown"] else "."
    )
    yield ""
    if counts["no"]:
        yield "The last column is for bounds on memory: how many times weft's time that one took."
        yield "Whoever takes longer has fewer tasks under way at once."
        yield ""
        yield "| missed in | workers | metric | who | against | compared | bound | its time |"
        yield "|---|---|---|---|---|---|---|---|"
        yield from (missed_line(stored, j) for j in judged if j.target["met"] == "no")
        yield ""


def missed_line(stored, missed):
    result, metric, target = missed
    row = result["workload"]
    other = opponent(stored, missed)
    text = {"adds_alone": "the adds alone", "absolute": "a value"}.get(target["baseline"], "")
    if other is not None:
        text = f"{label(other)} {with_spread(metric, other['metrics'][metric])}"
    return (
        f"| [{row}](#{anchor(row)}) | {result['workers']} | {name_of(metric)} | "
        f"{label(result)} {with_spread(metric, result['metrics'][metric])} | {text} | "
        f"{ratio(target['compared'])} | {target['bound']:g} | {its_time(stored, missed, other)} |"
    )


def opponent(stored, missed):
    """The contender that a bound refers to, if it is one."""
    result, metric, target = missed
    row, workers, baseline = result["workload"], result["workers"], target["baseline"]
    if baseline == "pool":
        return stored.best_go(row, workers, metric)
    wanted = {"unpooled": ("weft/bare",), "go": ("go", "go/goroutines")}.get(baseline, ())
    return next((r for r in stored.of(row, workers) if label(r) in wanted), None)


def its_time(stored, missed, other):
    primary = stored.shown(missed.result["workload"])[0]
    if missed.metric != RSS or primary == RSS or other is None:
        return ""
    ours = missed.result["metrics"][primary]["median"]
    return f"{ratio(other['metrics'][primary]['median'] / ours)} x" if ours > 0 else ""


def anchor(heading):
    return heading.lower()


def with_spread(metric, figures):
    low, high = (shown_figure(metric, figures, key) for key in ("min", "max"))
    return f"{shown_figure(metric, figures)} ({low} - {high})"


# ---- All rows at once


def overview(stored, paths):
    yield "## All rows"
    yield ""
    pictures = (("overview_time", "the first metric of each row"), ("overview_memory", "memory"))
    for name, what in pictures:
        if name in paths:
            yield f"![Ratios of {what}]({CHARTS}/{paths[name]})"
            yield ""
    yield "| row | workers | metric | weft | best of Go | | /pool | /go | /bare |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in stored.rows:
        for workers in stored.workers_of(row):
            yield from overview_lines(stored, row, workers)
    yield ""


def overview_lines(stored, row, workers):
    ours = stored.weft(row, workers)
    if ours is None:
        return
    primary = stored.shown(row)[0]
    for metric in dict.fromkeys((primary, RSS)):
        figures, best = ours["metrics"].get(metric), stored.best_go(row, workers, metric)
        if figures is None:
            continue
        other = shown_figure(metric, best["metrics"][metric]) if best else ""
        names = ("ratio_to_best_go_pool", "ratio_to_go", "ratio_to_unpooled")
        ratios = " | ".join(ratio(figures.get(name)) for name in names)
        yield (
            f"| [{row}](#{anchor(row)}) | {workers} | {name_of(metric)} | "
            f"{shown_figure(metric, figures)} | {other} | {label(best) if best else ''} | "
            f"{ratios} |"
        )


# ---- One row


def row_section(stored, row, picture):
    metrics = stored.shown(row)
    yield f"## {row}"
    yield ""
    if stored.about(row):
        yield stored.about(row)[0].upper() + stored.about(row)[1:] + "."
        yield ""
    if picture:
        yield f"![{row}]({CHARTS}/{picture})"
        yield ""
    names = " | ".join(name_of(metric) for metric in metrics)
    yield f"| workers | who | {names} | /go | /pool |"
    yield "|---|---|" + "---|" * len(metrics) + "---|---|"
    for result in stored.of(row):
        cells = [
            with_spread(m, result["metrics"][m]) if m in result["metrics"] else "" for m in metrics
        ]
        primary = result["metrics"][metrics[0]]
        ratios = [ratio(primary.get(n)) for n in ("ratio_to_go", "ratio_to_best_go_pool")]
        yield f"| {' | '.join([str(result['workers']), label(result), *cells, *ratios])} |"
    yield ""


def left_out(stored):
    for heading, key in (("Skipped", "skipped"), ("Failed", "failed")):
        notes = list(dict.fromkeys(stored.notes(key)))
        if notes:
            yield f"## {heading}"
            yield ""
            yield from (f"- {text}" for text in notes)
            yield ""


# ---- Charts


def drawings(stored):
    overviews = (
        ("overview_time", lambda row: stored.shown(row)[0]),
        ("overview_memory", lambda row: RSS),
    )
    for name, metric_of in overviews:
        if panel := ratio_panel(stored, name, metric_of):
            yield name, chart.draw([panel])
    for row in stored.rows:
        metrics = dict.fromkeys((stored.shown(row)[0], RSS))
        panels = [value_panel(stored, row, m) for m in metrics if m in stored.of(row)[0]["metrics"]]
        yield row, chart.draw(panels)


def ratio_panel(stored, name, metric_of):
    lines = []
    for row in stored.rows:
        marks = []
        for workers in stored.workers_of(row):
            metric = metric_of(row)
            ours, best = stored.weft(row, workers), stored.best_go(row, workers, metric)
            if ours and best and metric in ours["metrics"] and best["metrics"][metric]["median"]:
                figures, base = ours["metrics"][metric], best["metrics"][metric]["median"]
                values = (figures[key] / base for key in ("median", "min", "max"))
                marks.append(chart.Mark(workers, *values))
        if marks:
            lines.append(chart.Line(row, marks))
    what = "peak RSS" if name.endswith("memory") else "time"
    return chart.Panel(f"{what}: weft / best of Go", lines, reference=1.0) if lines else None


def value_panel(stored, row, metric):
    lines = {}
    for result in stored.of(row):
        figures = result["metrics"].get(metric)
        if figures and figures["median"] > 0:
            values = (figures[key] / unit_of(metric) for key in ("median", "min", "max"))
            lines.setdefault(label(result), []).append(chart.Mark(result["workers"], *values))
    drawn = [chart.Line(who, marks, who.startswith("weft")) for who, marks in lines.items()]
    return chart.Panel(name_of(metric), drawn)
