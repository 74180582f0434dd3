"""Reads the public interface and its comments from the headers, with libclang.

A declaration is public if a program may name it: it is in namespace weft or in a namespace or class
inside weft, except `detail`, and it is neither private nor protected. The comment above a declaration
is its description. Consecutive functions of one name share the first comment if the later ones have
no comment.
"""

import pathlib
import re
import sys
from typing import NamedTuple

# Debian installs the module for its own Python, and another Python may run this script.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from clang import cindex
except ImportError:
    cindex = None

SCOPES = ("NAMESPACE", "CLASS_DECL", "STRUCT_DECL", "CLASS_TEMPLATE")
FUNCTIONS = ("FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR",
             "CONVERSION_FUNCTION")
OTHERS = ("ENUM_DECL", "FIELD_DECL", "VAR_DECL", "TYPE_ALIAS_DECL", "TYPE_ALIAS_TEMPLATE_DECL",
          "CONCEPT_DECL", "ENUM_CONSTANT_DECL", "UNEXPOSED_DECL")


class Item(NamedTuple):
    kind: str  # class, enum, function, variable, type or value
    name: str  # Without its scope
    scope: str  # "weft::FiberPool"
    header: str  # "weft/pool.hpp"
    signatures: list
    text: list  # Lines of the comment
    members: list

    @property
    def qualified(self):
        return f"{self.scope}::{self.name}"


def described(cursor):
    """Returns the lines of the comment without their slashes."""
    lines = []
    for line in (cursor.raw_comment or "").splitlines():
        lines.append(re.sub(r"^\s*//[/!<]*", "", line).rstrip())
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return [line[cut:] for line in lines]


class Source:
    def __init__(self):
        self.texts = {}

    def of(self, extent):
        name = extent.start.file.name
        if name not in self.texts:
            self.texts[name] = pathlib.Path(name).read_bytes()
        return self.texts[name][extent.start.offset:extent.end.offset].decode()


# Parts of a declaration that the pages leave out: annotations for the compiler, and private bases.
NOT_SHOWN = re.compile(r" WEFT_[A-Z_]+(\([^()]*\))?| : private [\w:]+$")


def declared(text):
    """Returns a declaration without its body, its member initializers and its indentation."""
    depth, end = 0, len(text)
    for index, sign in enumerate(text):
        depth += sign in "(["
        depth -= sign in ")]"
        if depth == 0 and (sign == "{" or sign == ":" and text[index - 1:index] == " " and
                           text[index + 1:index + 2] == " "):
            end = index
            break
    lines = [re.sub(r"\s*//.*", "", line) for line in text[:end].rstrip(" ;\n").splitlines()]
    text = NOT_SHOWN.sub("", "\n".join(line for line in lines if line.strip()))
    indents = [len(line) - len(line.lstrip()) for line in text.splitlines()[1:]]
    cut = max(0, min(indents, default=0) - 4) if indents and min(indents) >= 4 else 0
    if indents and re.match(r"template|\[\[", text):
        cut = min(indents)
    first, *rest = text.splitlines() or [""]
    return "\n".join([first, *(line[cut:] for line in rest)])


class Reader:
    """Reads all items of a set of headers."""

    def __init__(self, include, headers):
        self.include, self.source = include.resolve(), Source()
        index = cindex.Index.create()
        options = cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
        text = "".join(f"#include <{name}>\n" for name in headers)
        self.unit = index.parse("all.cpp", unsaved_files=[("all.cpp", text)], options=options,
                                args=["-std=c++20", f"-I{self.include}", "-fparse-all-comments"])
        self.problems = [str(d) for d in self.unit.diagnostics if d.severity >= 3]

    def header_of(self, cursor):
        file = cursor.location.file
        if file is None:
            return ""
        path = pathlib.Path(file.name).resolve()
        inside = path.is_relative_to(self.include) and "detail" not in path.parts
        return str(path.relative_to(self.include)) if inside else ""

    def items(self):
        found = []
        for child in self.unit.cursor.get_children():
            if child.kind.name == "NAMESPACE" and child.spelling == "weft":
                found += self.scope(child, "weft")
        return found

    def scope(self, cursor, name):
        found = []
        for child in cursor.get_children():
            header, kind = self.header_of(child), child.kind.name
            if not header or child.access_specifier.name in ("PRIVATE", "PROTECTED"):
                continue
            if kind == "NAMESPACE":
                if child.spelling != "detail":
                    found += self.scope(child, f"{name}::{child.spelling}")
                continue
            item = self.item(child, header, name)
            if item is None:
                continue
            last = found[-1] if found else None
            if (last is not None and item.kind == "function" and last.kind == "function" and
                    last.name == item.name and last.header == header and
                    (not item.text or item.text == last.text)):
                last.signatures.extend(item.signatures)
            else:
                found.append(item)
        return found

    def item(self, cursor, header, scope):
        kind, text = cursor.kind.name, described(cursor)
        name = re.sub(r"<.*", "", cursor.spelling) if kind in FUNCTIONS and \
            not cursor.spelling.startswith("operator") else cursor.spelling
        if not name:
            return None
        written = self.source.of(cursor.extent)
        if kind in FUNCTIONS:
            if "= delete" in written or self.is_message(cursor) or cursor.is_default_method():
                return None
            if self.lies_inside(cursor):  # A member that is defined outside its class.
                return None
            return Item("function", name, scope, header, [declared(written)], text, [])
        if kind in SCOPES:
            if not cursor.is_definition():
                return None
            members = self.scope(cursor, f"{scope}::{name}")
            return Item("class", name, scope, header, [self.head(written)], text, members)
        if kind == "ENUM_DECL":
            if not cursor.is_definition():
                return None
            values = [Item("value", c.spelling, f"{scope}::{name}", header, [c.spelling],
                           described(c), []) for c in cursor.get_children()
                      if c.kind.name == "ENUM_CONSTANT_DECL"]
            return Item("enum", name, scope, header, [self.head(written)], text, values)
        if kind in ("FIELD_DECL", "VAR_DECL"):
            return Item("variable", name, scope, header, [re.sub(r"\s+", " ", written)], text, [])
        if kind in ("TYPE_ALIAS_DECL", "TYPE_ALIAS_TEMPLATE_DECL", "CONCEPT_DECL"):
            return Item("type", name, scope, header, [written], text, [])
        return None

    def is_message(self, cursor):
        """Returns whether it exists only for a compiler message. A template's extent ends before its body."""
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        text = self.source.texts[cursor.extent.start.file.name]
        rest = text[end:].lstrip()
        body = rest.partition(b"}\n")[0] if rest[:1] in (b"{", b":") else b""
        return b"detail::kFits<" in text[start:end] + body

    @staticmethod
    def lies_inside(cursor):
        parent, around = cursor.semantic_parent, cursor.lexical_parent
        return parent is not None and around is not None and parent != around

    @staticmethod
    def head(written):
        return NOT_SHOWN.sub("", re.sub(r"\s*\{.*", "", written, flags=re.DOTALL))


def public_headers(include):
    return sorted(str(path.relative_to(include)) for path in include.glob("weft/**/*.hpp")
                  if "detail" not in path.parts and path.name != "weft.hpp")


def subject(include, header):
    """Returns the first sentence of the header."""
    lines = opening(include, header)
    first = " ".join(lines[:lines.index("")] if "" in lines else lines)
    return re.split(r"(?<=[.:])\s", first)[0].rstrip(".:") + "."


def opening(include, header):
    """Returns the lines of the comment at the top of the header and of the comment above its namespace,
    which applies to all its declarations."""
    lines, parts, block = (include / header).read_text().splitlines(), [], []
    for line in [*lines[:lines.index("#pragma once")], "", *lines]:
        if line.startswith("//"):
            block.append(line.removeprefix("//").removeprefix(" "))
            continue
        if block and (not parts or re.match(r"(inline )?namespace weft\b(?!::detail)", line)):
            parts.append(block)
        block = []
    return [line for part in parts for line in ["", *part]][1:]


def limited(item, siblings):
    """Returns the function whose comment also applies to f_for(), which has no comment: f_until() or f()
    of the same scope."""
    base = item.name.removesuffix("_for")
    if item.text or item.kind != "function" or base == item.name:
        return None
    named = [s for name in (f"{base}_until", base) for s in siblings if s.name == name and s.text]
    return named[0] if named else None


def all_items(items):
    for item in items:
        yield item
        yield from all_items(item.members)


def read(include):
    """Returns the items of all public headers, and the compiler's errors."""
    if cindex is None:
        return None, ["the Python module clang is missing; run tools/install_packages site"]
    reader = Reader(include, public_headers(include))
    return reader.items(), reader.problems
