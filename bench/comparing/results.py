"""Computes medians, ratios and verdicts from the raw values."""

import statistics

from comparing.rows import ALL_ROWS, UNPOOLED

SERVERS = ("epoll", "go_fasthttp", "hyper", "actix")  # The servers to compare with weft's.


def summary(values):
    median = statistics.median(values)
    spread = (max(values) - min(values)) / median if median else 0
    return {
        "median": median,
        "min": min(values),
        "max": max(values),
        "spread": spread,
        "values": values,
    }


def best_go_pool(results, metric):
    """Returns the best Go pool. Plain goroutines are not a pool; they have a separate ratio."""
    pools = [r for r in results if r["subject"] == "go" and r["pool"] not in UNPOOLED]
    pools = [r for r in pools if metric in r["metrics"]]
    return min(pools, key=lambda r: r["metrics"][metric]["median"], default=None)


def plain(results, subject):
    found = (r for r in results if r["subject"] == subject and r["pool"] in UNPOOLED)
    return next(found, None)


def add_ratios(results):
    """Adds ratios. The best pool may differ by metric: the fastest may not use the least memory."""
    go, weft = plain(results, "go"), plain(results, "weft")
    servers = {f"ratio_to_{name}": plain(results, name) for name in SERVERS}
    for result in results:
        for metric, figures in result["metrics"].items():
            pool = best_go_pool(results, metric)
            bases = {"ratio_to_go": go, "ratio_to_best_go_pool": pool, "ratio_to_unpooled": weft}
            bases |= servers
            for name, base in bases.items():
                median = base["metrics"].get(metric, {}).get("median") if base else None
                if median:
                    figures[name] = figures["median"] / median


def compared_value(run, result, figures, target):
    """Returns the value that the target bounds, or None if its baseline was not measured."""
    if target.baseline == "absolute":
        return figures["median"]
    if target.baseline == "adds_alone":
        floor = run.adds_alone_ms.get(f"{result['workload']}, workers {result['workers']}")
        return figures["median"] / floor if floor else None
    if target.baseline == "one_worker":
        alone = next((r for r in run.results if r["workers"] == 1 and r["subject"] == "weft" and
                      r["workload"] == result["workload"]), None)
        base = alone and alone["metrics"].get(target.metric)
        return figures["median"] / base["median"] if base else None
    ratios = {
        "go": "ratio_to_go",
        "pool": "ratio_to_best_go_pool",
        "unpooled": "ratio_to_unpooled",
        **{name: f"ratio_to_{name}" for name in SERVERS},
    }
    return figures.get(ratios[target.baseline])


def add_verdicts(run, result):
    """Adds whether weft keeps the bounds of the selected targets. Bare fibers in pool rows have none."""
    if run.options.targets is None or result["subject"] != "weft" or result["pool"] == "bare":
        return
    for target in getattr(ALL_ROWS[result["workload"]], run.options.targets):
        figures = result["metrics"].get(target.metric)
        if figures is None or result["workers"] > target.most_workers:
            continue
        value = compared_value(run, result, figures, target)
        met = "unknown" if value is None else "yes" if value <= target.bound else "no"
        verdict = {"baseline": target.baseline, "bound": target.bound}
        figures.setdefault("targets", []).append({**verdict, "compared": value, "met": met})
