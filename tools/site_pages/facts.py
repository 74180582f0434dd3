"""Checks that the tags of a public function state who may call it, whether it parks, and what it throws.
A check cannot tell whether `Returns:` or `Ordering:` is missing: the summary may state the result, and a
call without `Ordering:` does not synchronize.

A function without a tag has the tag of the class around it, or otherwise that of the header. `noexcept`
replaces `Throws:`, and `Context: plain value` replaces all tags; EXPLAINED defines it for readers of
the reference.
"""

import pathlib
import re
import tempfile

from . import reference, tags

EXPLAINED = """Each description begins with a summary; its tags follow, in this order. A function without a tag has
the tag of its class; a class without a tag has the tag of its header, at the top of the page. A tag that
begins with *also* adds to the inherited tag.

- **Context**: who may call the function, and whether it parks. A call that parks suspends the fiber or
  blocks the plain thread. *Plain threads* are threads that the program has created itself. A **plain
  value** follows the rules of an `int`: one caller at a time may use it, or several may read it. Its calls
  do not park or synchronize, and can throw only `std::bad_alloc`.
- **Returns**: the result, if the summary does not state it. `f_for(duration)` does the same as
  `f_until()`, which is described next to it.
- **Errors**: codes that the returned `Result` or `std::error_code` may have.
- **Throws**: exceptions. `noexcept` functions throw nothing. Any other function may throw `std::bad_alloc`
  if it needs memory, and any exception of the program's own types and callables.
- **Ordering**: which operations synchronize with each other. Calls without this tag do not synchronize.
- **Lifetime**: when an object may be destroyed. **Fairness**: in which order waiters are served.
"""

# Matches a context that states whether the call parks. AS matches a reference such as `as for NAME`.
PARKS = re.compile(r"plain value|\b(park|block|suspend)s?\b")
AS = re.compile(r"^(?:the same as for|as for|as|whatever) ((?:\w+::)*(?:\w+(?=\(\))|[A-Z]\w+))")


class Known:
    """The names that a tag may refer to."""

    def __init__(self, items):
        self.names = set()
        for item in reference.all_items(items):
            if item.kind in ("function", "class"):
                self.names.update((item.name, item.qualified.removeprefix("weft::"),
                                   f"{item.scope.rpartition('::')[2]}::{item.name}"))

    def __contains__(self, name):
        return name.removeprefix("weft::") in self.names


def in_force(item, around):
    """Returns the tags of a function; its own tags override inherited ones of the same name."""
    found = {}
    for each in (*around, tags.of(item.text)):
        found.update(each)
    return found


def lacks(item, around, known):
    """Returns what the tags of a function leave out."""
    found, missed = in_force(item, around), []
    context = found.get("Context", "")
    if not context:
        missed.append("Context")
    elif not PARKS.search(context) and not AS.match(context):
        missed.append("whether it parks")
    missed += [f"a known {match.group(1)} in {name}" for name, text in found.items()
               if (match := AS.match(text)) and match.group(1) not in known]
    throws_nothing = all("noexcept" in signature or signature.startswith("~")
                         for signature in item.signatures)
    if not (throws_nothing or "Throws" in found or "plain value" in context):
        missed.append("Throws")
    return missed


def missing(items, include):
    """Returns functions with incomplete tags, and items whose tags are out of order."""
    known, headers, problems = Known(items), {}, []

    def look(siblings, around):
        for item in siblings:
            if not tags.in_order(item.text):
                problems.append(f"{item.header}: the tags of {item.qualified} are out of order")
            if item.header not in headers:
                headers[item.header] = tags.of(reference.opening(include, item.header))
            inside = around or [headers[item.header]]
            if item.kind == "class":
                look(item.members, [*inside, tags.of(item.text)])
            if item.kind != "function":
                continue
            other = reference.limited(item, siblings)
            if other:
                inside = [*inside, tags.of(other.text)]
            missed = lacks(item, inside, known)
            if missed:
                problems.append(f"{item.header}: {item.qualified}() lacks {', '.join(missed)}")

    look(items, [])
    return problems


PLANTED = """// What is planted.
// Throws: std::bad_alloc.
#pragma once
namespace weft {
// Has no tag.
int silent() noexcept;
// Has both.
// Context: fibers and plain threads; parks.
// Throws: as silent().
int told();
// Has both in one.
// Context, Throws: as told().
int referring();
// Refers to nothing.
// Context: as nothing().
int lost() noexcept;
// Says half.
// Context: fibers and plain threads.
int half();
// Says all.
// Context: plain value.
struct Value {
  // The number.
  int number() const;
};
// A queue.
// Context: fibers and plain threads; wait() parks.
class Queue {
 public:
  // Waits.
  void wait();
  // Waits.
  bool try_wait_until(int until);
  bool try_wait_for(int duration);
  // Has tags in another order.
  // Throws: nothing.
  // Context: fibers; parks.
  void put();
};
// Does not tell which calls park.
// Context: fibers, and also
// plain threads.
// Ordering: none.
class Other {
 public:
  // Inherits that.
  void get();
};
}  // namespace weft
"""


def self_test():
    """Returns whether the check finds exactly the planted faults."""
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "weft").mkdir()
        (include / "weft" / "planted.hpp").write_text(PLANTED)
        items, problems = reference.read(include)
        found = problems or missing(items, include)
    name = "weft/planted.hpp: "
    return sorted(found) == sorted([
        f"{name}weft::silent() lacks Context", f"{name}weft::half() lacks whether it parks",
        f"{name}weft::lost() lacks a known nothing in Context",
        f"{name}weft::Other::get() lacks whether it parks",
        f"{name}the tags of weft::Queue::put are out of order"])
