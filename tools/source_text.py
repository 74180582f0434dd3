"""Splits C++ source for the checks: code without comments, includes, blocks and statements.

This is not a full parser. It recognizes literals, comments, directives, brackets and braces, which
is enough for the project's rules. A construct that it misreads usually causes a false report.
"""

import pathlib
import re
import shutil
import tempfile

LAYERS = ("base", "fibers", "scheduler", "sync", "io", "runtime", "files", "net", "pool", "observe",
          "libs")

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<number>(?<![A-Za-z_0-9])[0-9](?:'?[0-9A-Za-z_.])*)
      | (?P<character>'(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b")


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


class Source:
    """One file. All texts have the same length and the same line breaks."""

    def __init__(self, root, path):
        self.path = path.as_posix()
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.split("\n")
        self.comments = {}  # Line number -> the comment text on that line.
        with_literals = _TOKEN.sub(self._without_comment, self.text)
        self.includes = [(self.line_of(m.start(1), with_literals), m[1] == "<", m[2])
                         for m in _INCLUDE.finditer(with_literals)]
        # `code` has no comments and literals; `body` also has no directives.
        self.code = _TOKEN.sub(self._without_literal, with_literals)
        self.body = _DIRECTIVE.sub(lambda m: _blank(m[0]), self.code)
        code_lines = self.code.split("\n")
        self.comment_only = {line for line in self.comments if not code_lines[line - 1].strip()}

    def _without_comment(self, match):
        if match["comment"] is None:
            return match[0]
        first = self.line_of(match.start(), self.text)
        for offset, part in enumerate(match[0].split("\n")):
            self.comments[first + offset] = self.comments.get(first + offset, "") + part
        return _blank(match[0])

    @staticmethod
    def _without_literal(match):
        if match["number"] is not None:
            return match[0]
        inside = match[0][1:-1]
        return match[0][0] + _blank(inside) + match[0][-1] if inside else match[0]

    def line_of(self, offset, text=None):
        return (self.text if text is None else text).count("\n", 0, offset) + 1


def sources(root, folders):
    """Returns every C++ file in the folders and their subfolders, sorted."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h", ".inl", ".ipp", ".tpp") and path.is_file():
                found.append(Source(root, path.relative_to(root)))
    return found


# A block's header is the text before its brace. These headers begin blocks that are not functions.
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
_CONTROL = re.compile(r"^\W*(if|for|while|switch|do|else|try|catch|return)\b")
_MEMBER_INITIALIZERS = re.compile(r"\)[^;{}]*?(?<!:):(?!:)")
_AFTER_PARAMETERS = re.compile(r"\b(const|noexcept|override|final|mutable|try)$")


def functions(source):
    """Yields (first line, last line, header) of each function outside other functions.

    All branches of a directive begin at the same depth: `#if ... {` / `#else ... {` is one brace.
    """
    stack = []  # (kind, first line, header) of each open brace.
    saved = []  # The stack at the time of each open #if.
    header, header_line = "", 1
    code_lines, body_lines = source.code.split("\n"), source.body.split("\n")
    for number, body in enumerate(body_lines, start=1):
        condition = _CONDITION.match(code_lines[number - 1])
        if condition:
            if condition[1].startswith("if"):
                saved.append(list(stack))
            elif saved and condition[1] == "endif":
                saved.pop()
            elif saved:
                stack = list(saved[-1])
        for character in body + "\n":
            if character == "{":
                kind = _block_kind(header.strip(), stack)
                stack.append((kind, header_line, header.strip()))
                header = header + " " if kind == "initializer" else ""
            elif character == "}":
                kind, first, opened = stack.pop() if stack else ("other", number, "")
                if kind == "function":
                    yield first, number, " ".join(opened.split())
                header = opened + "{}" if kind == "initializer" else ""
            elif character == ";" and header.count("(") <= header.count(")"):
                header = ""
            else:
                if not header.strip() and not character.isspace():
                    header_line = number
                header += character


def _block_kind(header, stack):
    if stack and stack[-1][0] in ("function", "other", "initializer"):
        return "other"
    without_template = re.sub(r"\btemplate\s*<[^()]*?>(?=\s*\w)", "", header)
    if "(" in header and _MEMBER_INITIALIZERS.search(header) and header[-1:].isidentifier() \
            and not _AFTER_PARAMETERS.search(header):
        return "initializer"
    if "(" in header and not _CONTROL.match(header) and not (
            _SCOPE.search(without_template.split("(")[0])):
        return "function"
    return "scope" if _SCOPE.search(header) else "other"


_ATTRIBUTES = re.compile(r"\[\[[^\]]*\]\]|\b(?:WEFT_\w+|alignas)\s*\((?:[^()]|\([^()]*\))*\)")
_ACCESS = re.compile(r"^\s*(?:(?:public|protected|private)\s*:(?!:)\s*)+")
_CLASS_NAME = re.compile(r"\b(?:class|struct)\s+(?:WEFT_\w+\s+)?([\w:]+)")
_NO_MEMBER = re.compile(r"(using|typedef|friend|static_assert|enum|class|struct|union|requires)\b")


def _plain(header):
    """Returns a declaration without the parts that may contain brackets: attributes, template arguments."""
    header = _ATTRIBUTES.sub(" ", _ACCESS.sub("", header)).replace("->", "  ")
    before = None
    while before != header:
        before, header = header, re.sub(r"(?<=[\w ])<[^<>;{}]*>", "", header)
    return re.sub(r"^\s*template\b", "", header).strip()


def _count(header, counts):
    """Adds a member, by its declaration, to [functions, fields]."""
    plain = _plain(header)
    if not plain or _NO_MEMBER.match(plain) or re.search(r"=\s*(default|delete)\s*$", plain):
        return
    declared = plain if re.search(r"\boperator\b", plain) else plain.split("=")[0]
    if "(" in declared and not re.search(r"\(\s*\*", declared.split(")")[0]):
        counts[0] += 1
    elif not re.match(r"(static|constexpr|inline static)\b", plain):
        counts[1] += 1 + re.sub(r"\([^()]*\)", "", declared).count(",")


def classes(source):
    """Yields (line, name, functions, fields) of each class. Static members do not count as fields.
    Defaulted and deleted functions do not count as functions."""
    stack = []  # [is a class, first line, header, [functions, fields]] of each open brace.
    header, header_line = "", 1
    for number, line in enumerate(source.body.split("\n"), start=1):
        for character in line + "\n":
            in_class = bool(stack) and stack[-1][0]
            if character == "{":
                plain = _plain(header)
                name = None if "(" in plain or plain.startswith("enum") else _CLASS_NAME.search(plain)
                is_open = not stack or stack[-1][0] or stack[-1][2].startswith(("namespace", "extern"))
                is_class = bool(name) and is_open
                stack.append([is_class, header_line, name[1] if is_class else header.strip(), [0, 0]])
                header = ""
            elif character == "}":
                was_class, first, opened, counts = stack.pop() if stack else (False, 0, "", None)
                header = ""
                if was_class:
                    yield first, opened, counts[0], counts[1]
                elif stack and stack[-1][0]:
                    if _block_kind(_plain(opened), []) == "function":
                        _count(opened, stack[-1][3])
                    elif not _plain(opened).startswith("enum"):
                        header = opened + " "  # The brace closed a value; the declaration continues.
            elif character == ";" and header.count("(") <= header.count(")"):
                if in_class:
                    _count(header, stack[-1][3])
                header = ""
            else:
                if not header.strip() and not character.isspace():
                    header_line = number
                header += character


def statements(body):
    """Yields (start, end) of each statement of a body text, also inside lambdas."""
    start = 0
    open_brackets = [0]  # For each open block: the number of open brackets in it.
    blocks = []          # For each open brace: whether it opens a block (or a braced value).
    for position, character in enumerate(body):
        if character in "([":
            open_brackets[-1] += 1
        elif character in ")]":
            open_brackets[-1] -= 1
        elif character == "{":
            before = body[start:position].rstrip()
            braced_value = open_brackets[-1] > 0 and (
                before[-1:].isidentifier() or before[-1:] in tuple("(,=>{")) and not re.search(
                    r"\b(mutable|noexcept|const)$", before)
            blocks.append(not braced_value)
            if not braced_value:
                yield start, position
                start = position + 1
                open_brackets.append(0)
        elif character == "}" and blocks:
            if blocks.pop():
                yield start, position
                start = position + 1
                open_brackets.pop()
        elif character == ";" and open_brackets[-1] == 0:
            yield start, position
            start = position + 1
    yield start, len(body)


def self_test(check, clean, cases):
    """Plants each case in a clean tree and expects its report. Returns whether each report was found.

    `check(root)` returns reports; `cases` are (description, {path: text}, a part of the report).
    """
    failures = []
    planted = [("a clean tree", {}, None)] + list(cases)
    for what, files, expected in planted:
        root = pathlib.Path(tempfile.mkdtemp(prefix="weft-self-test-"))
        try:
            for path, text in {**clean, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            reports = check(root)
        finally:
            shutil.rmtree(root)
        if expected is None and reports:
            failures.append(f"{what} was reported: {reports}")
        if expected is not None and not any(expected in report for report in reports):
            failures.append(f"{what} was not reported as '{expected}', only {reports}")
    for failure in failures:
        print(f"self-test: {failure}")
    print(f"self-test: {len(planted) - len(failures)} of {len(planted)} cases as expected")
    return not failures
