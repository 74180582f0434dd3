"""What the description of a public function must say: who may call it, whether it parks, what it throws
and what it synchronizes with (what it returns is its subject; a check cannot tell).

Each may be said by the function itself, by one that it refers to (`As read_some()`, `The same`), by
the class around it, by a class that this one is said to be (`A ByteStream over TCP`), or at the top
of the header. A `noexcept` says what is thrown. `A plain value` says all but what is thrown; the
page of the reference explains it, see EXPLAINED.
"""

import os
import pathlib
import re
import tempfile

from . import reference, tags

EXPLAINED = """What each text says, or that of its class or header:

- **Who may call it.** *Plain threads* are those that the program has made itself. A **plain value** is
  used as an `int` is: from anywhere, by one caller at a time, or by several that only read; its calls
  do not park, throw `std::bad_alloc` at most, and synchronize with nothing.
- **Whether it parks.** A call that parks keeps the fiber waiting, or blocks the plain thread.
- **What it throws.** `noexcept` functions throw nothing. Any other one may throw `std::bad_alloc` where it
  needs memory, and what the program's own types and callables throw; what else it throws, it says.
- **What it synchronizes with.** Calls that are not said to synchronize do not.
"""

STRICT = "WEFT_STRICT_TAGS" in os.environ
FACTS = {
    "who may call it": r"plain value|\b[Ff]rom (fibers|a fiber|any coroutine|plain threads|a plain thread|anywhere|anybody|any"
                       r" thread|whoever|wherever)|\bfibers and (from )?plain threads|[Aa]ny fiber or plain thread|"
                       r"block the plain thread|"
                       r"\b[Bb]y (anybody|one (caller|at)|whoever|its|Beast|weft-http|the (caller|server|"
                       r"client|fiber|thread|owner|writer|pool|same|request's|handler|one)|a (router|"
                       r"reader|plain))|\bFor (the calls|the client|async_result|streams)|"
                       r"(one|callers?|fibers?|writes) at (a|the same) time\b|"
                       r"callers( may use one)? at once|at the same time, too",
    "whether it parks": r"plain value|\bpark|\bPark|\bblock|\bBlock|\b[Ww]aits?\b",
    "what it throws": r"plain value|[Tt]hrow|exception",
    "what it synchronizes with": r"plain value|[Ss]ynchroni[sz]e",
}
# The text around a function has to speak of all calls: that somebody waits, or that a task may throw,
# is not said of each.
OF_ALL = {
    "whether it parks": r"plain value|\b([Cc]alls?|[Tt]hey|[Aa]ll|[Nn]either|[Nn]or|[Nn]one|only [\w ]+)\b[^.;:]*"
                        r"\b(parks?|blocks?)\b|\bparks\b",
    "what it throws": r"plain value|\b([Cc]alls?|[Tt]hey|[Aa]ll|[Nn]either|[Nn]or|[Nn]one|[Ww]aits?|only [\w ]+)\b"
                      r"[^.;:]*\bthrows?\b|\bthrows\b",
}
REFERS = re.compile(r"\b[Aa]s (?:for |of |by |in |that of |those of )?`?((?:\w+::)*~?\w+)|"
                    r"\b[Ss]ee `?((?:\w+::)*\w+)\(\)|^((?:\w+::)*\w+)\(\)")
SAME = re.compile(r"^(The|These|Both)?\s*same\b|^The same|^As above")
IS_A = re.compile(r"(?:^(?:A|An)|\b[Aa]s (?:for|those of)) ((?:\w+::)*[A-Z]\w+)\b")


class Texts:
    """All that is said about each function, its own words first."""

    def __init__(self, items, include):
        self.include, self.headers = include, {}
        self.functions, self.classes = {}, {}
        for item in reference.all_items(items):
            if item.kind == "function":
                for name in (item.qualified, item.qualified.removeprefix("weft::"),
                             f"{item.scope.rpartition('::')[2]}::{item.name}"):
                    self.functions.setdefault(name, item)
            if item.kind == "class":
                self.classes.setdefault(item.name, item)

    def header_lines(self, name):
        if name not in self.headers:
            self.headers[name] = reference.opening(self.include, name)
        return self.headers[name]

    def header(self, name):
        return " ".join(self.header_lines(name))

    def own(self, item, siblings, depth=0):
        text = " ".join(item.text)
        if depth > 4:
            return text
        found = [text]
        for match in REFERS.finditer(text):
            name = next(group for group in match.groups() if group)
            others = [s for s in siblings if s is not item and s.name == name and s.kind == "function"]
            other = others[0] if others else self.functions.get(name)
            if other is not None and other is not item:
                found.append(self.own(other, siblings if others else [], depth + 1))
                found += [self.around(c) for c in (self.class_of(other),) if c and not others]
        if SAME.match(text):
            place = next(i for i, s in enumerate(siblings) if s is item) if siblings else 0
            if place > 0:
                found.append(self.own(siblings[place - 1], siblings, depth + 1))
        return " ".join(found)

    def class_of(self, item):
        return self.classes.get(item.scope.rpartition("::")[2])

    def around(self, item, depth=0):
        """A class's words, with those of the class that it is said to be."""
        text = " ".join(item.text)
        if depth < 3:
            for match in IS_A.finditer(text):
                other = self.classes.get(match.group(1).rpartition("::")[2])
                if other is not None and other is not item:
                    text += " " + self.around(other, depth + 1)
        return text


def untagged(item, around, known):
    """What the tags of a function, of its classes and of its header leave out. Those around it come
    from the outside to the inside: the innermost counts."""
    found = {}
    for text in (*around, tags.of(item.text)):
        found.update(text)
    context, lacks = found.get("Context", ""), []
    if not context:
        lacks.append("Context")
    elif not re.search(r"plain value|\bparks?\b|\bblocks?\b|^as ", context):
        lacks.append("whether it parks")
    lacks += [f"what {name} is" for name in re.findall(r"^as `?((?:\w+::)*~?\w+)", context)
              if name.removeprefix("weft::") not in known]
    throws_nothing = all("noexcept" in signature or signature.startswith("~")
                         for signature in item.signatures)
    if not (throws_nothing or "Throws" in found or "plain value" in context):
        lacks.append("Throws")
    return lacks


def missing(items, include):
    """Functions that leave something out, and tags in another order than all have."""
    texts, problems = Texts(items, include), []
    known = {name for full in (*texts.functions, *texts.classes) for name in (full, full.split("::")[-1])}

    def look(siblings, around, tagged):
        for item in siblings:
            if not tags.in_order(item.text):
                problems.append(f"{item.header}: the tags of {item.qualified} are out of order")
            inside = tagged or [tags.of(texts.header_lines(item.header))]
            if item.kind == "class":
                look(item.members, f"{around} {texts.around(item)}", [*inside, tags.of(item.text)])
            other = reference.limited(item, siblings)
            if other:
                inside = [*inside, tags.of(other.text)]
            if item.kind != "function" or not untagged(item, inside, known):
                continue
            if STRICT:
                problems.append(f"{item.header}: {item.qualified}() has no "
                                f"{', '.join(untagged(item, inside, known))}")
                continue
            own, others = texts.own(item, siblings), f"{around} {texts.header(item.header)}"
            throws_nothing = all("noexcept" in signature or signature.startswith("~")
                                 for signature in item.signatures)
            lacks = [fact for fact, said in FACTS.items() if not re.search(said, own) and
                     not re.search(OF_ALL.get(fact, said), others) and
                     not (fact == "what it throws" and throws_nothing)]
            if lacks:
                problems.append(f"{item.header}: {item.qualified}() does not say {', '.join(lacks)}")

    look(items, "", [])
    return problems


PLANTED = """// What is planted.
#pragma once
namespace weft {
// Says nothing.
int silent();
// From fibers and plain threads; never parks. Throws what it likes. Synchronizes with nothing.
int told();
// As told().
int referring();
// From fibers and plain threads; never parks.
int half();
// A plain value.
struct Value {
  // The number.
  int number() const;
};
// From fibers and plain threads. Calls park and synchronize where they say so.
class Told {
 public:
  // Throws nothing.
  int kept() const noexcept;
  // May fail.
  int lacking();
};
// From fibers and plain threads; synchronizes with nothing. Who waits in it is served in order.
class Queue {
 public:
  // Behind the others.
  void put() noexcept;
};
// A queue with tags.
// Context: fibers and plain threads; wait() parks.
class Tagged {
 public:
  // Waits.
  // Throws: std::bad_alloc.
  void wait();
  // Wakes.
  void wake() noexcept;
};
// A Told with more: the same holds.
class Derived {
 public:
  // Never fails.
  void more() noexcept;
};
}  // namespace weft
"""


def self_test():
    """Whether what is planted is found, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "weft").mkdir()
        (include / "weft" / "planted.hpp").write_text(PLANTED)
        items, problems = reference.read(include)
        found = problems or missing(items, include)
    wanted = {"silent": 4, "half": 2, "lacking": 1, "put": 1}
    told = {line.partition("(")[0].rpartition("::")[2]: len(line.split(" does not say ")[1].split(", "))
            for line in found}
    return told == wanted
