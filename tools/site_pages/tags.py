"""The tags of a comment: lines that begin with `Context:`, `Returns:`, `Throws:` and so on.

A comment is a summary, more prose where it is needed, and then its tags, in the order below. A tag's
text goes on to the next tag, an empty line, an indented line, or to what is about the inside. Several
tags may share a text: `Context, Throws: as go().`
"""

import re

NAMES = ("Context", "Returns", "Errors", "Throws", "Ordering", "Lifetime", "Fairness")
TAG = re.compile(rf"^((?:{'|'.join(NAMES)})(?:, (?:{'|'.join(NAMES)}))*): ")
# Where a comment goes on to what only readers of the source need.
INSIDE = re.compile(r"^(Invariants?\b|Order$|Order\b.*:|  I1\b)")


def split(line):
    """The names of the tags that this line begins, and what it says; no names if it begins none."""
    match = TAG.match(line)
    return (match.group(1).split(", "), line[match.end():].strip()) if match else ([], line.strip())


def of(lines):
    """Name -> text, in the order of the comment."""
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
    """Whether each tag comes once, and in the order of NAMES."""
    found = []
    for line in lines:
        if INSIDE.match(line):
            break
        found += [NAMES.index(name) for name in split(line)[0]]
    return found == sorted(set(found))
