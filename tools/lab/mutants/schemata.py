"""Makes one build with all faults that can be selected at run time.

The script copies the tracked files into a folder and rewrites the place of each fault there. The
place has its fault only if WEFT_MUTANT is the fault's number (mutant.hpp has the operators). A place
that the compiler rejects in that form is left unchanged, and can be tried only by compiling. Each
test program then runs once without a fault, and records the faults that its cases reach and that
would make a difference there. Later, each fault runs only these cases.
"""

import collections
import itertools
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
MOST = 65536  # Must equal kMost in mutant.hpp.
INCLUDE = '#include "base/mutant.hpp"\n#pragma GCC system_header\n#line 1\n'
COMPARISONS = {"<=": ("<", "l", ">"), ">=": ("<", "g", ">"), "<": ("<", "s", ">"),
               "==": ("==", "=", "=="), "!=": ("==", "!", "==")}
# Files that are added to the copy, and changes in the copy that build them.
ADDED = ("base/mutant.hpp", "base/mutant.cpp", "tests/support/mutant_cases.cpp")
AMENDED = {
    "base/meson.build": ("'error.cpp',", "'error.cpp', 'mutant.cpp',"),
    "meson.build": ("library_arguments = inner_arguments",
                    "library_arguments = inner_arguments + ['-w']"),
    "tests/meson.build": ("'support/main.cpp'", "'support/main.cpp', 'support/mutant_cases.cpp'"),
}

# How the copy is built. Often only a check of indices or a sanitizer detects a fault that accesses
# memory past an array.
Way = collections.namedtuple("Way", "folder compiler options")
PLAIN = Way("build-check/gcc", "g++", ("-Dcpp_args=-D_GLIBCXX_ASSERTIONS",))
SANITIZED = Way("build-check/asan", "clang++", (
    "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1", "-Ddebug=false",
    "-Db_ndebug=false",
    # Compared values are bound to references, which packed members may not align.
    "-Dcpp_args=-D_GLIBCXX_ASSERTIONS -gline-tables-only -fno-sanitize=alignment"))


def edits_of(fault, number):
    """Returns the edits (start, end, text) of a fault's line, or None if no rewriting is possible."""
    start, end = fault.span
    text = fault.old[start:end]
    if fault.kind in ("dropped wake", "removed fence"):
        return [(start, start, f"(::weft_mutant::is_chosen({number}) ? void() : void("),
                (end - 1, end, "));")]
    if text in ("+ 1", "- 1"):
        return [(start + 2, end, f"::weft_mutant::one({number})")]
    if text in COMPARISONS:
        before, which, after = COMPARISONS[text]
        comparison = f"::weft_mutant::Comparison<'{which}'>{{{number}}}"
        return [(start, end, f"{before} {comparison} {after}")]
    if fault.kind == "negated condition":
        negates = text.endswith("!")
        condition = f"::weft_mutant::Condition{{{number}, {str(negates).lower()}}}->*"
        return [(end - 1 if negates else end, end, condition)]
    return None


def run_bounded(command, seconds, environment, folder=None):
    """Returns the exit status, or None after the time limit. Also ends the processes it started."""
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")  # The kernel ends it first.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare, cwd=folder,
                          env={**os.environ, **environment}) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Schemata:
    """The copy, its build, and the faults that its tests reach."""

    def __init__(self, root, folder, faults, programs, is_sanitized):
        self.root, self.copy, self.programs = root, folder / "source", programs
        self.way = SANITIZED if is_sanitized else PLAIN
        self.build = self.copy / self.way.folder  # The same depth as ./check's, for ccache.
        self.faults = {number: fault for number, fault in enumerate(faults, 1)
                       if edits_of(fault, number)}
        self.rewritten = {fault.path for fault in self.faults.values()}
        self.cases = {}  # Program -> [(name, seconds, numbers of the faults it reaches)].

    def prepare(self):
        """Copies, rewrites and builds, without the faults that the compiler rejects."""
        tracked = subprocess.run(["git", "ls-files"], cwd=self.root, text=True, check=True,
                                 capture_output=True).stdout.splitlines()
        for path in tracked:
            if path not in self.rewritten and path not in AMENDED:
                self.write(path, (self.root / path).read_bytes())
        for path, (before, after) in AMENDED.items():
            text = (self.root / path).read_text()
            assert before in text, (path, before)
            self.write(path, text.replace(before, after, 1).encode())
        for path in ADDED:
            self.write(path, (HERE / pathlib.Path(path).name).read_bytes())
        self.plant()
        # Configure each time, because meson only then searches for new test files.
        again = ["--reconfigure"] if (self.build / "build.ninja").exists() else []
        cached = "ccache " if shutil.which("ccache") else ""
        subprocess.run(["meson", "setup", *again, self.build, self.copy, "-Dwerror=true",
                        "-Dbench=false", "-Dexamples=false", *self.way.options], check=True,
                       stdout=subprocess.DEVNULL,
                       env={"CXX": cached + self.way.compiler, **os.environ})
        while refused := self.refused():
            for number in refused:
                del self.faults[number]
            self.plant()

    def write(self, path, content):
        file = self.copy / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_bytes() != content:
            file.write_bytes(content)
            if (self.root / path).exists():
                shutil.copymode(self.root / path, file)

    def by_path(self):
        found = {path: [] for path in self.rewritten}
        for number, fault in self.faults.items():
            found[fault.path].append((number, fault))
        return found

    def plant(self):
        for path, faults in self.by_path().items():
            self.write(path, self.rewrite(path, faults).encode())

    def refused(self):
        """Builds the copy, and returns the numbers of the faults that the compiler rejected."""
        by_path = self.by_path()
        for targets in (["libweft.a"], [f"tests/{program}_tests" for program in self.programs]):
            result = subprocess.run(["nice", "ninja", "-C", self.build, "-j1", "-k", "0", *targets],
                                    text=True, check=False, capture_output=True,
                                    env={"CCACHE_NOHASHDIR": "1", **os.environ})
            if result.returncode == 0:
                continue
            output = re.sub(r"\x1b\[[\d;]*[mK]", "", result.stdout)
            places = re.findall(
                r"([\w/]+\.[ch]pp):(\d+):\d+: +(?:error:|required from here|note: .*requested here)",
                output)
            at_fault = {number for path, line in places
                        for number, fault in by_path.get(path.lstrip("/"), ())
                        if fault.number == int(line)}
            if not at_fault:
                raise SystemExit(f"mutate: the copy does not build\n{output[-5000:]}")
            return at_fault
        return set()

    def rewrite(self, path, faults):
        lines = (self.root / path).read_text().splitlines(keepends=True)
        edits = {}
        for number, fault in faults:
            edits.setdefault(fault.number, []).extend(edits_of(fault, number))
        for line, changes in edits.items():
            text = lines[line - 1]
            for start, end, instead in sorted(set(changes), reverse=True):
                text = text[:start] + instead + text[end:]
            lines[line - 1] = text
        return INCLUDE + "".join(lines)

    def record(self, environment):
        """Runs each program without a fault and stores its cases. Each program must pass."""
        reached = self.build / "reached"
        for program in self.programs:
            reached.write_bytes(bytes(MOST))
            listed = pathlib.Path(f"{reached}.cases")
            listed.unlink(missing_ok=True)
            if self.run(program, [], 600, {**environment, "WEFT_MUTANTS_REACHED": str(reached)}):
                raise SystemExit(f"mutate: {program}_tests fails without a fault")
            lines = (line.split("\t") for line in listed.read_text().splitlines())
            self.cases[program] = [(name, float(seconds), {int(n) for n in numbers.split()})
                                   for name, seconds, numbers in lines]

    def run(self, program, cases, seconds, environment):
        # doctest separates names at commas. `?` matches any character.
        chosen = ["-tc=" + ",".join(re.sub(r"[,\\\"]", "?", case) for case in cases)] if cases else []
        return run_bounded([self.build / f"tests/{program}_tests", "-aa=1", *chosen], seconds,
                           environment)

    def reaching(self, number, program, seconds=None):
        """Returns the cases that reach a fault, the shortest first, up to `seconds` in total."""
        found = sorted((lasts, name) for name, lasts, numbers in self.cases[program]
                       if number in numbers)
        ends = itertools.accumulate(lasts for lasts, _ in found)
        return [name for (_, name), end in zip(found, ends)
                if seconds is None or end <= seconds or name == found[0][1]]

    def noticed_by(self, number, programs, seconds, environment):
        """Returns the first program that fails with the fault and passes without it. Otherwise returns
        "" if one fails both times, or None. `seconds` limits the time of the cases without a fault."""
        doubtful = False
        for program in programs:
            names = self.reaching(number, program, seconds)
            bound = 60 + 4 * sum(lasts for name, lasts, _ in self.cases[program] if name in names)
            if not names or self.run(program, names, bound,
                                     {**environment, "WEFT_MUTANT": str(number)}) == 0:
                continue
            if self.run(program, names, bound, environment) == 0:
                return f"tests/{program}_tests"
            doubtful = True
        return "" if doubtful else None
