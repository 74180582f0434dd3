"""The tags of a comment: lines that begin with `Context:`, `Returns:`, `Throws:` and so on.

A comment is a summary, more prose where it is needed, and then its tags, in the order below. A tag's
text goes on to the next tag, an empty line, an indented line, or to what is about the inside.
"""

import re

NAMES = ("Context", "Returns", "Throws", "Ordering", "Lifetime", "Fairness")
TAG = re.compile(rf"^({'|'.join(NAMES)}): ")
# Where a comment goes on to what only readers of the source need.
INSIDE = re.compile(r"^(Invariants?\b|Order$|Order\b.*:|  I1\b)")


def of(lines):
    """Name -> text, in the order of the comment."""
    found, current = {}, None
    for line in lines:
        match = TAG.match(line)
        if INSIDE.match(line):
            break
        if match:
            current = match.group(1)
            found[current] = line[match.end():].strip()
        elif not line.strip() or line.startswith("  "):
            current = None
        elif current:
            found[current] += " " + line.strip()
    return found


def in_order(lines):
    """Whether each tag comes once, and in the order of NAMES."""
    found = []
    for line in lines:
        if INSIDE.match(line):
            break
        match = TAG.match(line)
        if match:
            found.append(NAMES.index(match.group(1)))
    return found == sorted(set(found))
