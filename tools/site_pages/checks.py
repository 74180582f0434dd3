"""Checks of the headers and of a built site: each public function has a comment and a place on a page,
and each link has a target."""

import html.parser
import os
import re
import urllib.parse

from . import interface, reference


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])


def links(site):
    """Returns links without a target, and pages without a link to them."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text())
             for path in site.rglob("*.html")}
    problems, reached = [], {"index.html", "404.html"}
    for name, page in pages.items():
        for link in page.links:
            address, _, place = link.partition("#")
            if re.match(r"[a-z]+:", link):
                if not link.startswith(("https:", "http:", "mailto:", "data:", "javascript:")):
                    problems.append(f"{name}: unknown scheme: {link}")
                continue
            target = name if not address else os.path.normpath(
                os.path.join(os.path.dirname(name), urllib.parse.unquote(address.split("?")[0])))
            if name == "404.html":
                target = target.lstrip("./")
            if (site / target).is_dir():
                target = os.path.normpath(os.path.join(target, "index.html"))
            reached.add(target)
            if not (site / target).exists():
                problems.append(f"{name}: broken link: {link}")
            elif place and target in pages and urllib.parse.unquote(place) not in pages[target].ids:
                problems.append(f"{name}: no such anchor: {link}")
    problems += [f"{name}: no page links to it" for name in pages if name not in reached]
    return problems


def comments(items):
    """Returns public functions without a comment. Consecutive overloads share a comment, and so do
    f_until() and f_for()."""
    problems = []

    def look(siblings):
        for item in siblings:
            look(item.members)
            if item.kind == "function" and not any(line.strip() for line in item.text) and \
                    not reference.limited(item, siblings):
                problems.append(f"{item.header}: {item.qualified}() has no comment; describe it and "
                                "add its tags (CONTRIBUTING.md)")

    look(items)
    return problems


def functions(items, site):
    """Returns public items without a place on the site."""
    problems, pages = [], {}
    for item in reference.all_items(items):
        if item.kind == "value":
            continue
        name = interface.page_of(item.header).removesuffix(".md") + ".html"
        if name not in pages:
            path = site / name
            pages[name] = Page(path.read_text()).ids if path.exists() else set()
        if interface.anchor(item) not in pages[name]:
            problems.append(f"{item.qualified} of {item.header} is not in {name}")
    return problems
