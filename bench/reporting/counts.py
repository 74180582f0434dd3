"""The tables of docs/where_the_time_goes.md: what bench/count_instructions has stored."""

import json
import re

from counting.rows import COUNTED

STORED = "bench/results/instructions.json"
BEGIN, END = "<!-- counts of {} -->", "<!-- end of counts -->"
BLOCK = re.compile(r"<!-- counts of (\w+) -->\n.*?<!-- end of counts -->", re.DOTALL)
SHOWN_FUNCTIONS = 8


def filled(text, stored):
    """The document with each block made again; the rest is written by hand."""
    rows = {result["workload"]: result for result in stored["results"]}

    def block(found):
        name = found[1]
        lines = {"origin": origin, "overview": overview}.get(name, row_block)(stored, rows, name)
        return "\n".join([BEGIN.format(name), *lines, END])

    return BLOCK.sub(block, text)


def stale(root, document):
    """What is wrong with a document that has such blocks."""
    text = (root / document).read_text()
    if text != filled(text, json.loads((root / STORED).read_text())):
        yield f"{document}: not what {STORED} makes; bench/count_instructions --document does"


def has_blocks(text):
    return BLOCK.search(text) is not None


def origin(stored, rows, name):
    build = ", ".join(f"{key} {value}" for key, value in sorted(stored["weft_build"].items()))
    changed = ", with uncommitted changes" if stored["uncommitted_changes"] else ""
    yield f"Counted at weft `{stored['commit'][:12]}`{changed} ({build}),"
    yield f"{stored['compilers']['c++']}, {stored['valgrind']} with {' '.join(stored['caches'])},"
    yield f"{stored['date'][:10]}, one worker."


def figure(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def budget_of(row):
    return sum(cost for _, cost in COUNTED[row].budget)


def overview(stored, rows, name):
    yield "| row | one operation | in theory | now | now / theory | D1 misses | LL misses |"
    yield "|---|---|---|---|---|---|---|"
    for row, found in rows.items():
        theory, now = budget_of(row), found["instructions"]
        misses = " | ".join(figure(max(0, found[e])) for e in ("d1_misses", "ll_misses"))
        yield (
            f"| [{row}](#{row.lower()}) | {COUNTED[row].operation} | {theory} | {figure(now)} | "
            f"{now / theory:.1f} | {misses} |"
        )


def row_block(stored, rows, name):
    found = rows[name]
    yield f"One operation: {COUNTED[name].operation}."
    yield ""
    yield "| in theory | instructions |"
    yield "|---|---|"
    yield from (f"| {what} | {cost} |" for what, cost in COUNTED[name].budget)
    yield f"| **together** | **{budget_of(name)}** |"
    yield ""
    yield "| now, by function | instructions | D1 misses | LL misses |"
    yield "|---|---|---|---|"
    shown = [f for f in found["functions"][:SHOWN_FUNCTIONS] if f["instructions"] >= 0.5]
    events = ("instructions", "d1_misses", "ll_misses")
    for function in shown:
        figures = " | ".join(figure(max(0, function[event])) for event in events)
        yield f"| `{function['name']}` | {figures} |"
    rest = (found[event] - sum(f[event] for f in shown) for event in events)
    yield f"| all others | {' | '.join(figure(max(0, value)) for value in rest)} |"
    together = (f"**{figure(max(0, found[event]))}**" for event in events)
    yield f"| **together** | {' | '.join(together)} |"
