"""Writes a bar chart as SVG: a panel for each metric, a bar for each contender.

Bars start at zero, so their lengths are proportional to the values. A thin line extends from the
smallest measured value to the largest.
"""

from typing import NamedTuple

from .chart import rule, text

BAR, STEP, TOP, BOTTOM, NAMES, PLOT, FIGURE, GAP = 18, 30, 62, 34, 178, 220, 66, 22
OURS, OTHERS = "#1f6fb4", "#9a9a9a"


class Bar(NamedTuple):
    label: str
    median: float
    low: float
    high: float
    is_ours: bool = False


class Bars(NamedTuple):
    title: str
    unit: str
    bars: list


def draw(title, panels, note):
    """Returns the text of an SVG file. All panels have the same contenders; their names appear once."""
    width = NAMES + len(panels) * (PLOT + FIGURE + GAP)
    height = TOP + STEP * len(panels[0].bars) + BOTTOM
    parts = [text(16, 24, title, 15, weight="bold")]
    for index, bar in enumerate(panels[0].bars):
        middle = TOP + STEP * (index + 0.5)
        weight = "bold" if bar.is_ours else "normal"
        parts.append(text(NAMES - 12, middle + 4, bar.label, 13, "end", weight))
    for number, panel in enumerate(panels):
        left = NAMES + number * (PLOT + FIGURE + GAP)
        scale = PLOT / max(bar.high for bar in panel.bars)
        parts.append(text(left, TOP - 8, panel.title, 12))
        for index, bar in enumerate(panel.bars):
            top = TOP + STEP * index + (STEP - BAR) / 2
            colour = OURS if bar.is_ours else OTHERS
            box = f'x="{left:.1f}" y="{top:.1f}" width="{bar.median * scale:.1f}" height="{BAR}"'
            parts.append(f'<rect {box} rx="2" fill="{colour}"/>')
            middle = top + BAR / 2
            parts.append(rule(left + bar.low * scale, middle, left + bar.high * scale, middle,
                              "#202020", 1.5))
            parts.append(text(left + bar.high * scale + 8, middle + 4,
                              f"{bar.median:.0f} {panel.unit}", 12))
    parts.append(text(16, height - 12, note, 11))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" role="img">')
    white = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, white, *parts, "</svg>"]) + "\n"
