"""Writes charts as SVG: small, reproducible, and readable in a diff.

A chart is a row of panels. A panel has a logarithmic axis and a line for each contender. A line has a
mark for the median of each number of workers, and a bar from the smallest value to the largest. The
axis has no zero: compare positions, which show ratios, and not lengths.
"""

import math
from typing import NamedTuple
from xml.sax.saxutils import escape

LINE = 22  # Height of a contender's line; marks for several numbers of workers are one below another.
TOP, BOTTOM, LABELS, PLOT, GAP = 44, 30, 280, 250, 40
COLOURS = {1: "#1f6fb4", 2: "#d9731a", 4: "#3a9a4b", 8: "#8a4fb0"}
OTHER = "#4c4c4c"
OWN = "#e4f0fa"  # Background of weft's lines.


class Mark(NamedTuple):
    workers: int
    median: float
    low: float
    high: float


class Line(NamedTuple):
    label: str
    marks: list
    is_ours: bool = False


class Panel(NamedTuple):
    title: str
    lines: list
    reference: float = 0  # A value to mark; 0 means none.


class Axis:
    """Maps a value to a position. The axis begins and ends at 1, 2 or 5 times a power of ten."""

    def __init__(self, panel):
        values = [v for line in panel.lines for mark in line.marks for v in mark[1:] if v > 0]
        values += [panel.reference] if panel.reference else []
        self.low = max(v for v in steps_around(min(values)) if v <= min(values))
        self.high = min(v for v in steps_around(max(values)) if v >= max(values))
        if self.low == self.high:
            self.low, self.high = self.low / 2, self.high * 2

    def place(self, value):
        span = math.log(self.high) - math.log(self.low)
        part = (math.log(max(value, self.low)) - math.log(self.low)) / span
        return PLOT * min(1, part)

    def ticks(self):
        """Returns the densest set of at most eight ticks; the sparsest set has only powers of ten."""
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [factor * 10.0**exponent for exponent in exponents for factor in factors]
            found = [v for v in found if self.low * 0.999 <= v <= self.high * 1.001]
            if 2 <= len(found) <= 8:
                return found
        return [self.low, self.high]


def steps_around(value):
    exponent = math.floor(math.log10(value))
    return [f * 10.0**e for e in (exponent, exponent + 1) for f in (1, 2, 5)]


def text(x, y, content, size=12, anchor="start", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(content)}</text>'
    )


def rule(x1, y1, x2, y2, colour, width=1.0):
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width:g}"/>'
    )


def axis_of(panel, axis, left, height):
    for value in axis.ticks():
        x = left + axis.place(value)
        yield rule(x, TOP, x, height - BOTTOM, "#dddddd")
        yield text(x, height - BOTTOM + 16, f"{value:g}", 11, "middle")
    if panel.reference:
        x = left + axis.place(panel.reference)
        yield rule(x, TOP, x, height - BOTTOM, "#aa2222", 1.5)


def marks_of(line, axis, left, middle):
    spread = 7 if len(line.marks) > 1 else 0
    for index, mark in enumerate(line.marks):
        y = middle + spread * (index / max(1, len(line.marks) - 1) - 0.5)
        colour = COLOURS.get(mark.workers, OTHER)
        low, high = left + axis.place(mark.low), left + axis.place(mark.high)
        yield rule(low, y, high, y, colour, 2)
        x = left + axis.place(mark.median)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def legend(panels):
    workers = sorted({m.workers for panel in panels for line in panel.lines for m in line.marks})
    x = 10
    for count in workers:
        yield f'<circle cx="{x:.1f}" cy="14.0" r="3.5" fill="{COLOURS.get(count, OTHER)}"/>'
        yield text(x + 8, 18, f"{count} worker" + ("s" if count != 1 else ""), 11)
        x += 90


def draw(panels):
    """Returns the text of an SVG file."""
    width = 10 + len(panels) * (LABELS + PLOT + GAP)
    height = TOP + LINE * max(len(panel.lines) for panel in panels) + BOTTOM
    parts = list(legend(panels))
    for number, panel in enumerate(panels):
        start = 10 + number * (LABELS + PLOT + GAP)
        left, axis = start + LABELS, Axis(panel)
        parts.append(text(start, TOP - 10, panel.title, 12, weight="bold"))
        for index, line in enumerate(panel.lines):
            top = TOP + LINE * index
            if line.is_ours:
                box = f'x="{start:.1f}" y="{top:.1f}" width="{LABELS + PLOT}" height="{LINE}"'
                parts.append(f'<rect {box} fill="{OWN}"/>')
        parts += axis_of(panel, axis, left, height)
        for index, line in enumerate(panel.lines):
            middle = TOP + LINE * (index + 0.5)
            weight = "bold" if line.is_ours else "normal"
            parts.append(text(left - 10, middle + 4, line.label, 12, "end", weight))
            parts += marks_of(line, axis, left, middle)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif">'
    )
    white = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, white, *parts, "</svg>"]) + "\n"
