"""Checks that the names in documents exist.

A test compiles the code blocks. This check covers `code` in sentences and tables:
  `weft::name`, `weft::Class::name`   must be public
  `Class::name`                       must be a member, if Class is public
  `name()`                            must be at least an identifier of the source files
The check skips tables with a column `weft`, which compare weft with other libraries.
"""

import re

from . import reference

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUALIFIED = re.compile(r"(?<![\w:<>])((?:[A-Za-z_]\w*::)+~?[A-Za-z_]\w*)")
CALL = re.compile(r"^(~?[A-Za-z_]\w*)\(\)$")

INNER = {"base", "detail", "fibers", "pool", "runtime", "scheduler", "sync", "test"}


def documents(root):
    """Returns the pages of the site without the decisions and the changelog, which name removed items."""
    readmes = [root / folder / "README.md" for folder in ("scheduler", "scheduler/upkeep", "pool", "bench", "examples")]
    return [root / "README.md", root / "CONTRIBUTING.md", *readmes,
            *sorted((root / "docs").glob("*.md"))]


def words_of(root):
    """Returns each identifier of the source files."""
    found = set()
    for ending in ("hpp", "cpp", "py", "go"):
        for path in root.glob(f"*/**/*.{ending}"):
            if not path.relative_to(root).parts[0].startswith("build"):
                found.update(re.findall(r"[A-Za-z_]\w*", path.read_text(errors="replace")))
    return found


def known_names(items):
    names, scopes = set(), {}
    for item in reference.all_items(items):
        names.update((item.scope, item.qualified, item.qualified.removeprefix("weft::"), item.name,
                      f"{item.scope.rpartition('::')[2]}::{item.name}"))
        if item.kind in ("class", "enum"):
            scopes.setdefault(item.name, set())
        if item.scope != "weft":
            scopes.setdefault(item.scope.rpartition("::")[2], set()).add(item.name)
    return names, scopes


def spans(text):
    """Yields (line number, code) for sentences and for tables without a column `weft`."""
    text = BLOCK.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    column = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if column is None:
                column = cells.index("weft") if "weft" in cells else -1
            if column >= 0:
                continue  # A test compiles this table.
        else:
            column = None
        for match in SPAN.finditer(line):
            yield number, match.group(1)


def unknown(span, names, scopes, words):
    """Returns the name in this code that does not exist, or None."""
    for match in QUALIFIED.finditer(span):
        name = match.group(1)
        *_, owner, last = name.split("::")
        if name.startswith("std::") or last.lstrip("~") == owner or set(name.split("::")) & INNER:
            continue
        if name.startswith("weft::") and name not in names:
            return name
        if owner in scopes and last not in scopes[owner]:
            return name
    call = CALL.match(span)
    if call and call.group(1).lstrip("~") not in words:
        return span
    return None


def check(root, items):
    names, scopes = known_names(items)
    words = words_of(root)
    problems = []
    for document in documents(root):
        for number, span in spans(document.read_text()):
            name = unknown(span, names, scopes, words)
            if name is not None:
                problems.append(f"{document.relative_to(root)}:{number}: unknown name {name}")
    return problems
