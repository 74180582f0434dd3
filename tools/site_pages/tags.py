"""Reads the tags of a comment: lines that begin with `Context:`, `Returns:`, `Throws:` and so on.

A comment has a summary, optional further prose, and then its tags, in the order below. The text of a
tag ends before the next tag, an empty or indented line, or the notes about the implementation. Several
tags may share a text: `Context, Throws: as go().`
"""

import re

NAMES = ("Context", "Returns", "Errors", "Throws", "Ordering", "Lifetime", "Fairness")
TAG = re.compile(rf"^((?:{'|'.join(NAMES)})(?:, (?:{'|'.join(NAMES)}))*): ")
# Matches the line where the notes about the implementation begin.
INSIDE = re.compile(r"^(Invariants?\b|Order$|Order\b.*:|  I1\b)")


def split(line):
    """Returns the names of the tags that begin on this line (possibly none), and the text."""
    match = TAG.match(line)
    return (match.group(1).split(", "), line[match.end():].strip()) if match else ([], line.strip())


def of(lines):
    """Returns {name: text}, in the order of the comment."""
    found, current = {}, []
    for line in lines:
        if INSIDE.match(line):
            break
        names, text = split(line)
        if names:
            current = names
            found.update(dict.fromkeys(names, text))
        elif not line.strip() or line.startswith("  "):
            current = []
        for name in [] if names else current:
            found[name] += " " + text
    return found


def in_order(lines):
    """Returns whether each tag occurs at most once, in the order of NAMES."""
    found = []
    for line in lines:
        if INSIDE.match(line):
            break
        found += [NAMES.index(name) for name in split(line)[0]]
    return found == sorted(set(found))
