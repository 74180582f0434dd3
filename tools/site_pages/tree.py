"""Creates the site's pages from the documents of the repository, and adapts their links."""

import os
import re
import shutil

LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|(?<=\n\n)(?:    [^\n]*\n)+|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# Documents outside docs/ that are also pages.
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md",
           "CHANGELOG.md": "changelog.md", "scheduler/README.md": "scheduler.md",
           "scheduler/upkeep/README.md": "upkeep.md", "pool/README.md": "inside_the_pool.md",
           "bench/README.md": "how_it_is_measured.md", "examples/README.md": "examples.md"}


class Tree:
    """Copies the pages and the files that they link to into a folder."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.pages = {}  # Path in the repository -> path in the site.
        self.titles = {}
        self.problems = []

    def collect(self):
        for path in sorted((self.root / "docs").rglob("*.md")):
            name = path.relative_to(self.root / "docs")
            self.pages[str(path.relative_to(self.root))] = str(name)
        for source, name in OUTSIDE.items():
            if (self.root / source).exists():
                self.pages[source] = name
        for folder in sorted({os.path.dirname(p) for p in self.pages.values() if "/" in p}):
            self.pages.setdefault(f"docs/{folder}", f"{folder}/index.md")
        self.pages["examples"] = "examples.md"

    def write(self):
        for source, name in self.pages.items():
            path = self.root / source
            if path.is_dir():
                if name.endswith("/index.md"):
                    self.put(name, self.listing(path))
                continue
            text = path.read_text()
            self.titles[name] = re.search(r"^# (.*)$", text, re.MULTILINE).group(1)
            # Remove the note that tells a test how to compile the block.
            text = re.sub(r"^```cpp .*$", "```cpp", text, flags=re.MULTILINE)
            if name == "index.md":  # This part of the navigation has no other page.
                text = f"---\nhide: [navigation]\n---\n{text}"
            self.put(name, self.with_links(text, source, name))

    def put(self, name, text):
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def listing(self, path):
        lines = [f"# {path.name.capitalize()}", ""]
        for page in sorted(path.glob("*.md")):
            title = re.search(r"^# (.*)$", page.read_text(), re.MULTILINE).group(1)
            lines.append(f"- [{title}]({page.name})")
        return "\n".join(lines) + "\n"

    def with_links(self, text, source, name):
        code = [match.span() for match in CODE.finditer(text)]

        def replace(match):
            if any(start <= match.start() < end for start, end in code):
                return match.group(0)
            return f"{self.said(match, source)}({self.target(match.group(2), source, name)})"
        return LINK.sub(replace, text)

    def said(self, match, source):
        """Returns the text of a link. If the text is a path, returns the title of the page instead."""
        words, link = match.groups()
        if words[1:-1].rstrip("/") != link.partition("#")[0].rstrip("/") or words.startswith("!"):
            return words
        wanted = os.path.normpath(os.path.join(os.path.dirname(source), words[1:-1]))
        path = self.root / wanted
        path = path / "README.md" if path.is_dir() else path
        title = path.suffix == ".md" and path.exists() and \
            re.search(r"^# (.*)$", path.read_text(), re.MULTILINE)
        return f"[{title.group(1)}]" if title else words

    def target(self, link, source, name):
        if re.match(r"[a-z]+:|#", link):
            return link
        path, hash_sign, place = link.partition("#")
        wanted = os.path.normpath(os.path.join(os.path.dirname(source), path)).rstrip("/")
        here = os.path.dirname(name)
        if wanted in self.pages:
            return os.path.relpath(self.pages[wanted], here or ".") + hash_sign + place
        original = self.root / wanted
        if original.is_dir() and (original / "README.md").exists():
            original, wanted = original / "README.md", f"{wanted}/README.md"
        if not original.is_file():
            self.problems.append(f"{source}: broken link: {link}")
            return link
        if original.suffix in (".svg", ".png"):
            copy = wanted.removeprefix("docs/")
        else:  # Browsers show text files.
            copy = f"files/{wanted}" + ("" if original.suffix == ".json" else ".txt")
        (self.folder / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, self.folder / copy)
        return os.path.relpath(copy, here or ".") + hash_sign + place

    def examples(self):
        """Appends the source files of the examples to their page."""
        path = self.folder / "examples.md"
        parts = [path.read_text()]
        for source in sorted((self.root / "examples").glob("*.cpp")):
            text = source.read_text()
            parts.append(f"\n## {source.name}\n\n```cpp\n{text}```\n")
        path.write_text("".join(parts))
