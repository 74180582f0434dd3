"""The page: what was measured where, what is met and what is missed, and each row in full."""

import pathlib
import shlex
import statistics

from comparing.rows import RSS
from reporting import chart
from reporting.stored import (
    StoredRuns,
    label,
    name_of,
    ratio,
    shown_figure,
    targets_of,
    unit_of,
)
from reporting.words import Words

README = "bench/README.md"
MARK = "<!-- Made by: "
CHARTS = "charts"


def command(runs, title, words, target):
    names = " ".join(str(run) for run in runs)
    given = f" --words {words}" if words else ""
    return f"bench/report {names} --title {shlex.quote(title)}{given} --output {target}"


def make(root, runs, title, words, target):
    """Each file of the page with its text, by its path in the tree. `words` is a file, or None."""
    stored = StoredRuns([root / run for run in runs], root / README)
    spoken = Words((root / words).read_text() if words else "")
    charts = {name: drawn for name, drawn in drawings(stored)}
    paths = {name: f"{target.stem}_{name}.svg" for name in charts}
    lines = [
        f"{MARK}{command(runs, title, words, target)} -->",
        f"# {title}: what was measured",
        "",
        "Made by the command in the first line, not by hand; `tools/check_reports` compares. What",
        f"each row is, and how the programs run, is in [bench/README.md]({up(target)}{README}).",
        "",
        *spoken.introduction(),
        *run_facts(stored, runs, target),
        *how_to_read(stored),
        *verdicts(stored),
        *overview(stored, paths),
    ]
    for row in stored.rows:
        lines += row_section(stored, row, spoken.of(row), paths.get(row))
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
        "spread": spread_in_words(stored, content),
        "bounds": content["targets"] or "none",
        "remark": content.get("remark", ""),
    }


def spread_in_words(stored, content):
    """How far repetitions differ, in the first metric of each row."""
    if content["repetitions"] < 2:
        return ""
    spreads = [
        result["metrics"][stored.shown(row)[0]]["spread"]
        for row in stored.rows_of(content)
        for result in stored.of(row)
        if stored.shown(row)[0] in result["metrics"]
    ]
    return (
        f"(largest - smallest) / median: {100 * statistics.median(spreads):.0f} % in the middle, "
        f"{100 * max(spreads):.0f} % at most"
    )


def rows_in_words(stored, content):
    if len(stored.contents) == 1:
        return "all"
    return "all others" if content is stored.contents[0] else ", ".join(stored.rows_of(content))


def how_to_read(stored):
    yield "Figures are medians, with the smallest and the largest value in parentheses. Ratios are"
    yield "of medians; below 1 weft is faster or smaller. `/go`: against plain goroutines."
    if stored.has_pools():
        yield "`/pool`: against the Go pool that is best in this row and metric. `/bare`: against"
        yield "weft's own fibers without a pool."
    else:
        yield "`/C++`: against the C++ library that is best in this row and metric; in the table of"
        yield "a single row, `/weft` and `/go` say how many times weft's, or Go's, figure that is."
    yield "A time is this machine's, in its mood of that hour; a ratio is worth more."
    yield ""


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
        if any(j.metric == RSS and j.target["met"] == "no" for j in judged):
            yield "The last column is for bounds on memory: how many times weft's time that one"
            yield "took. Whoever takes longer has fewer tasks under way at once."
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
    wanted = {"unpooled": ("weft/bare",), "go": ("go", "go/goroutines")}.get(
        baseline, (baseline,)
    )
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
    pictures = (
        ("overview_time", "the first metric of each row"),
        ("overview_cxx", "the first metric of each row, to C++ libraries"),
        ("overview_memory", "memory"),
    )
    for name, what in pictures:
        if name in paths:
            yield f"![Ratios of {what}]({CHARTS}/{paths[name]})"
            yield ""
    if stored.has_pools():
        yield "| row | workers | metric | weft | best of Go | | /pool | /go | /bare |"
        yield "|---|---|---|---|---|---|---|---|---|"
    else:
        yield "| row | workers | metric | weft | Go | /go | best C++ | | /C++ | bound | met |"
        yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in stored.rows:
        for workers in stored.workers_of(row):
            lines = overview_lines if stored.has_pools() else overview_lines_without_pools
            yield from lines(stored, row, workers)
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


def overview_lines_without_pools(stored, row, workers):
    ours = stored.weft(row, workers)
    for metric in stored.metrics_with_bounds(row) if ours else ():
        figures = ours["metrics"][metric]
        go, other = stored.best_go(row, workers, metric), stored.best_cxx(row, workers, metric)
        theirs = [shown_figure(metric, r["metrics"][metric]) if r else "" for r in (go, other)]
        bounds = targets_of(figures)
        words = "; ".join(bound_in_words(metric, target) for target in bounds)
        cells = [f"[{row}](#{anchor(row)})", str(workers), name_of(metric)]
        cells += [shown_figure(metric, figures), theirs[0], ratio(figures.get("ratio_to_go"))]
        cells += [theirs[1], label(other) if other else ""]
        cells += [ratio(stored.ratio_between(ours, other, metric)), words]
        cells += [", ".join(target["met"] for target in bounds)]
        yield f"| {' | '.join(cells)} |"


def bound_in_words(metric, target):
    against = {"go": "/go", "adds_alone": "/the adds alone", "pool": "/pool", "unpooled": "/bare"}
    if target["baseline"] == "absolute":
        return f"<= {target['bound'] / unit_of(metric):g}"
    name = against.get(target["baseline"], f"/{target['baseline']}")
    return f"{name} <= {target['bound']:g}"


# ---- One row


def row_section(stored, row, spoken, picture):
    metrics = stored.shown(row)
    yield f"## {row}"
    yield ""
    if spoken:
        yield from spoken
        yield ""
    elif stored.about(row):
        yield stored.about(row)[0].upper() + stored.about(row)[1:] + "."
        yield ""
    if picture:
        yield f"![{row}]({CHARTS}/{picture})"
        yield ""
    names = " | ".join(name_of(metric) for metric in metrics)
    columns = {"/go": "ratio_to_go", "/pool": "ratio_to_best_go_pool"}
    if not stored.has_pools():
        columns = {"/weft": "ratio_to_unpooled", "/go": "ratio_to_go"}
    yield f"| workers | who | {names} | {' | '.join(columns)} |"
    yield "|---|---|" + "---|" * len(metrics) + "---|---|"
    for result in stored.of(row):
        cells = [
            with_spread(m, result["metrics"][m]) if m in result["metrics"] else "" for m in metrics
        ]
        primary = result["metrics"].get(metrics[0], {})
        ratios = [ratio(primary.get(name)) for name in columns.values()]
        yield f"| {' | '.join([str(result['workers']), label(result), *cells, *ratios])} |"
    yield ""


def left_out(stored):
    for heading, key in (("Skipped", "skipped"), ("Failed", "failed")):
        notes = list(together(dict.fromkeys(stored.notes(key))))
        if notes:
            yield f"## {heading}"
            yield ""
            yield from (f"- {text}" for text in notes)
            yield ""


def together(notes):
    """Rows that a subject does not have at all are one line."""
    ending = ": not among its workloads"
    absent = {}
    for text in notes:
        if text.endswith(ending):
            who, row = text.removesuffix(ending).split(": ")
            absent.setdefault(who, []).append(row)
        else:
            yield text
    yield from (f"{who}{ending}: {', '.join(rows)}" for who, rows in absent.items())


# ---- Charts


def drawings(stored):
    def primary(row):
        return stored.shown(row)[0]

    overviews = (
        ("overview_time", "time: weft / best of Go", primary, stored.best_go),
        ("overview_cxx", "time: weft / best C++ library", primary, stored.best_cxx),
        ("overview_memory", "peak RSS: weft / best of Go", lambda row: RSS, stored.best_go),
    )
    for name, title, metric_of, best_of in overviews:
        if panel := ratio_panel(stored, title, metric_of, best_of):
            yield name, chart.draw([panel])
    for row in stored.rows:
        metrics = dict.fromkeys((stored.shown(row)[0], RSS))
        panels = [value_panel(stored, row, m) for m in metrics if m in stored.of(row)[0]["metrics"]]
        yield row, chart.draw(panels)


def ratio_panel(stored, title, metric_of, best_of):
    lines = []
    for row in stored.rows:
        marks = []
        for workers in stored.workers_of(row):
            metric = metric_of(row)
            ours, best = stored.weft(row, workers), best_of(row, workers, metric)
            if ours and best and metric in ours["metrics"] and best["metrics"][metric]["median"]:
                figures, base = ours["metrics"][metric], best["metrics"][metric]["median"]
                values = (figures[key] / base for key in ("median", "min", "max"))
                marks.append(chart.Mark(workers, *values))
        if marks:
            lines.append(chart.Line(row, marks))
    return chart.Panel(title, lines, reference=1.0) if lines else None


def value_panel(stored, row, metric):
    lines = {}
    for result in stored.of(row):
        figures = result["metrics"].get(metric)
        if figures and figures["median"] > 0:
            values = (figures[key] / unit_of(metric) for key in ("median", "min", "max"))
            lines.setdefault(label(result), []).append(chart.Mark(result["workers"], *values))
    drawn = [chart.Line(who, marks, who.startswith("weft")) for who, marks in lines.items()]
    return chart.Panel(name_of(metric), drawn)
