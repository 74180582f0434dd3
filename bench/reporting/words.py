"""What a page says besides figures: an introduction, and for each row a text under its name."""


class Words:
    """From a file like the page itself: whatever stands before the first heading is for all."""

    def __init__(self, text):
        self._sections = {"": []}
        lines = self._sections[""]
        for line in text.splitlines():
            if line.startswith("## "):
                lines = self._sections.setdefault(line[3:], [])
            else:
                lines.append(line)

    def introduction(self):
        found = trimmed(self._sections[""])
        return [*found, ""] if found else []

    def of(self, row):
        return trimmed(self._sections.get(row, []))


def trimmed(lines):
    """Without the empty lines around it."""
    return "\n".join(lines).strip().splitlines()
