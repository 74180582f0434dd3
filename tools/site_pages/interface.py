"""Generates the reference in Markdown: one page for each public header, from its items."""

import re

from . import reference, tags

# Sentences that readers often search for get a separate paragraph.
LOOKED_FOR = re.compile(r"^(Requires|Always:)")
NAME = re.compile(r"`[^`]*`|\b(?:[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+|[A-Za-z]\w*_\w*|[A-Z]\w*[a-z]\w*|\w+(?=\(\)))"
                  r"(?:\(\))?")
HEADING = {"class": "", "enum": "", "function": "()", "variable": "", "type": ""}


def anchor(item):
    return re.sub(r"[^A-Za-z0-9_~.-]", "-", item.qualified.removeprefix("weft::").replace("::", "."))


def page_of(header):
    return "api/" + header.removeprefix("weft/").removesuffix(".hpp").replace("/", "_") + ".md"


class Links:
    """Finds the place on the site that describes a name."""

    def __init__(self, items):
        self.places, self.ambiguous = {}, set()
        for item in reference.all_items(items):
            place = item if item.kind != "value" else None
            owner = item.scope.rpartition("::")[2]
            where = (page_of(item.header), anchor(place) if place else
                     re.sub(r"::", ".", item.scope.removeprefix("weft::")))
            for name in (item.qualified, item.qualified.removeprefix("weft::"),
                         f"{owner}::{item.name}"):
                self.places.setdefault(name, where)
            # A name in several namespaces, such as Options, is ambiguous without its scope.
            if item.scope == "weft" or item.kind in ("class", "enum"):
                if self.places.setdefault(item.name, where) != where and item.scope != "weft":
                    self.ambiguous.add(item.name)

    def place(self, name, scope):
        name = name.strip("`").removesuffix("()")
        for candidate in (f"{scope}::{name}", name):
            if candidate in self.places and candidate not in self.ambiguous:
                return self.places[candidate]
        return None

    def marked(self, text, scope, here, parameters=()):
        """Returns the text with names as code, and with links for known names. A function's parameters,
        and a plain word such as Once at the beginning of a sentence, get no link."""
        def replace(match):
            word = match.group(0)
            known = self.place(word, scope)
            bare = word.strip("`")
            begins = match.start() == 0 or re.search(r"[.:!?(] $", text[:match.start()])
            if bare in parameters or (begins and re.fullmatch(r"[A-Z][a-z]+", word)):
                known = None
            is_code = word.startswith("`") or "_" in bare or "::" in bare or bare.endswith("()")
            if known is None:
                return f"`{bare}`" if is_code else word
            page, target = known
            page = "" if page == here else page.removeprefix("api/")
            return f"[`{bare}`]({page}#{target})"
        parts, last = [], 0
        for match in NAME.finditer(text):
            parts += [escaped(text[last:match.start()]), replace(match)]
            last = match.end()
        return "".join([*parts, escaped(text[last:])])


def escaped(text):
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([*_\[\]\\|`])", r"\\\1", text)


def paragraphs(lines):
    """Yields each paragraph of a comment as a text, and each indented example or list of calls as a list
    of lines. Yields None before the notes about the implementation."""
    current, example, inside, listed = [], [], False, False

    def done():
        if current:
            yield " ".join(part.strip() for part in current)
        if example:
            while not example[-1]:
                example.pop()
            yield list(example)
        current.clear()
        example.clear()

    for line in [*lines, ""]:
        begins_inside = not inside and tags.INSIDE.match(line)
        indented = line.startswith("  ") and not (inside or begins_inside or listed)
        if example and (indented or not line.strip()):
            example.append(line[2:].rstrip())
            continue
        if indented:
            yield from done()
            example.append(line[2:].rstrip())
            continue
        listed = line.startswith("- ") or (listed and line.startswith("  "))
        if not line.strip() or begins_inside or LOOKED_FOR.match(line) or tags.TAG.match(line) or \
                line.startswith("- ") or example or (inside and re.match(r"\s*(I\d|\[|Order)", line)):
            yield from done()
        if begins_inside:
            inside = True
            yield None
        if line.strip():
            current.append(line)
    yield from done()


def example_of(lines):
    """Returns a block of code, or of plain text if the lines describe calls."""
    cut = min(len(line) - len(line.lstrip()) for line in lines if line)
    kind = "cpp" if any(re.search(r"[;{]\s*(//.*)?$", line) for line in lines) else "text"
    return [f"```{kind}", *(line[cut:] for line in lines), "```"]


PARAMETER = re.compile(r"(?<=[\w>&*\])] )[&*]*(\w+)(?=[,)]| =)")


def description(lines, links, scope, here, parameters=()):
    out, prefix = [], ""
    for paragraph in paragraphs(lines):
        if paragraph is None:
            out += ['??? note "Inside"', ""]
            prefix = "    "
        elif isinstance(paragraph, list):
            out += [*(prefix + line for line in example_of(paragraph)), ""]
        elif tags.TAG.match(paragraph) and not prefix:
            name, _, text = paragraph.partition(": ")
            out += [name, f":   {links.marked(text, scope, here, parameters)}", ""]
        elif paragraph.startswith("- "):
            out += [f"{prefix}- {links.marked(paragraph[2:], scope, here, parameters)}", ""]
        else:
            out += [prefix + links.marked(paragraph, scope, here, parameters), ""]
    return out


def comment(item, links, here):
    scope = item.qualified if item.kind == "class" else item.scope
    parameters = {name for signature in item.signatures for name in PARAMETER.findall(signature)}
    return description(item.text, links, scope, here, parameters)


def siblings_text(item, siblings):
    """Returns a description for a function that shares the comment of another function."""
    other = reference.limited(item, siblings)
    return [f"Does the same as `{other.name}()`, for at most `duration`.", ""] if other else []


def function_or_type(item, level, links, here, siblings):
    # Use entities, because the table of contents does not support backslash escapes.
    name = re.sub(r"[^\w ~]", lambda sign: f"&#{ord(sign.group(0))};", item.name)
    yield f"{'#' * level} {name}{HEADING[item.kind]} {{ #{anchor(item)} }}"
    yield ""
    yield "```cpp"
    for signature in item.signatures:
        yield signature + ";"
    yield "```"
    yield ""
    yield from comment(item, links, here)
    yield from siblings_text(item, siblings)


def table(items, links, here, what):
    yield f"| {what} | |"
    yield "|---|---|"
    for item in items:
        scope = item.scope
        text = " ".join(links.marked(p, scope, here) if isinstance(p, str) else
                        " ".join(f"`{line.strip()}`" for line in p if line)
                        for p in paragraphs(item.text) if p)
        code = item.signatures[0].replace("|", "\\|")
        mark = f'<a id="{anchor(item)}"></a>' if item.kind == "variable" else ""
        yield f"| {mark}`{code}` | {text} |"
    yield ""


def rendered(item, level, links, here, siblings):
    yield from function_or_type(item, level, links, here, siblings)
    if item.kind == "enum":
        yield from table(item.members, links, here, "value")
    if item.kind != "class":
        return
    fields = [m for m in item.members if m.kind == "variable"]
    if fields:
        yield from table(fields, links, here, "member")
    for member in item.members:
        if member.kind != "variable":
            yield from rendered(member, min(level + 1, 5), links, here, item.members)


def page(header, items, links, about):
    """Yields the Markdown lines of one header."""
    here = page_of(header)
    yield f"# &lt;{header}&gt;"
    yield ""
    yield from description(about, links, "weft", here)
    mine = [item for item in items if item.header == header]
    loose = [item for item in mine if item.kind == "variable"]
    if loose:
        yield from table(loose, links, here, "constant")
    for item in mine:
        if item.kind != "variable":
            yield from rendered(item, 2, links, here, mine)
