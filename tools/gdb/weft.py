"""Fibers in gdb, live and in core files:

    (gdb) info fibers             prints one line for each fiber
    (gdb) fiber 7 bt              prints the backtrace of fiber 7, parked or running, as `fiber 7` does
    (gdb) fiber 7 frame 9         runs any other command with the fiber's innermost frame selected
    (gdb) fiber apply all bt      prints the backtraces of all parked and running fibers
    (gdb) fiber apply 3 7-9 bt    prints the backtraces of some fibers
    (gdb) fiber core FILE         writes a core file with the fibers' stacks; the process continues

gdb loads this script automatically if weft is installed as a shared library below /usr. Elsewhere:

    (gdb) source tools/gdb/weft.py

The script writes no register and no memory of the process. For the time of one command, an unwinder
makes the selected thread appear to be called by a parked fiber. The library must have debug
information. The script supports only x86-64, because it depends on the places of saved registers.
"""

import bisect
import os
import re
import struct

import gdb
import gdb.unwinder

SLAB_BYTES = 64 << 10
SLAB_HEADER_BYTES = 64
PAGE = 4096
PT_LOAD = 1  # The type of the program headers of a core file that describe memory.
# The offsets at which Boost.Context's fcontext stores the registers that a call preserves. A build with
# weft's own assembly has a SavedContext instead. Its other registers are in the parked call's frame.
BOOST = {"r12": 0x08, "r13": 0x10, "r14": 0x18, "r15": 0x20, "rbx": 0x28, "rbp": 0x30, "rip": 0x38}
BOOST_BYTES = 0x40


def number(value):
    """Returns the value of a detail::Atomic of an integer, an enumeration or a pointer."""
    inner = value["value_"]
    try:
        return int(inner["_M_b"]["_M_p"])
    except gdb.error:
        return int(inner["_M_i"])


def printable(text):
    """Replaces control characters, because names come from a program and terminals interpret them."""
    return "".join(c if c.isprintable() else "?" for c in text)


def elements(vector):
    start, finish = vector["_M_impl"]["_M_start"], vector["_M_impl"]["_M_finish"]
    return [start[i] for i in range(int(finish - start))]


def readable(mangled):
    """Returns the demangled symbol, or the mangled one if gdb cannot demangle it."""
    try:
        # By default gdb uses the language of the selected frame, which may be assembly.
        return gdb.execute("demangle -l c++ -- " + mangled, to_string=True).strip()
    except gdb.error:
        return mangled


class Fiber:
    def __init__(self, record):
        self.state = number(record["state"])
        self.reason = gdb.Value(number(record["wait_reason"]) & 0x7F).cast(
            gdb.lookup_type("weft::detail::WaitReason"))
        self.task = number(record["task"]["operations_"]) & ~1
        self.id, self.name, self.context, self.stack, self.end = 0, "", 0, range(0), 0
        stack = number(record["stack"])
        if stack != 0:
            header = gdb.Value(stack).cast(gdb.lookup_type("weft::fibers::Stack").pointer())
            self.id = number(header["fiber_id"])
            text = gdb.selected_inferior().read_memory(int(header["name"].address), 32)
            self.name = printable(bytes(text).split(b"\0")[0].decode(errors="replace"))
            self.context = number(header["context"])
            self.stack = range(int(header["lowest"]), stack)
            self.end = stack + header.type.target().sizeof

    def runs(self):
        """Returns a text with the type of the fiber's callable, or an empty text if it is unknown."""
        if self.task == 0:
            return ""
        operations = gdb.Value(self.task).cast(
            gdb.lookup_type("weft::detail::Task::Operations").pointer())
        type_info = int(operations["type"])
        if type_info == 0:
            return ""
        # The name is the second word of a std::type_info, for which debug information is often missing.
        name = gdb.Value(type_info + 8).cast(gdb.lookup_type("char").pointer().pointer())
        mangled = name.dereference().string().lstrip("*")
        if mangled == "v":
            return ""
        return "; runs " + readable("_ZTI" + mangled).replace("typeinfo for ", "")

    def describe(self):
        state = ("has ended", "is ready", "is running", "is parked",
                 "waits for one that runs on its stack")[self.state]
        reason = ": " + str(self.reason).split("::")[-1] if self.state in (PARKED, INLINING) else ""
        who = f"fiber {self.id} '{self.name}'" if self.id else "fiber (not started)"
        return f"{who} {state}{reason}{self.runs()}"


FREE, RUNNING, PARKED, INLINING = 0, 2, 3, 4


def all_fibers():
    try:
        registry = gdb.parse_and_eval("'weft::scheduler::(anonymous namespace)::registry'")
        record = gdb.lookup_type("weft::fibers::Fiber")
    except gdb.error as error:
        raise gdb.GdbError("debug information of weft is missing: install libweft0-dbgsym, or build "
                           f"weft with -Ddebug=true ({error})") from error
    count = (SLAB_BYTES - SLAB_HEADER_BYTES) // record.sizeof
    for scheduler in elements(registry["object_"]):
        for slab in elements(scheduler["shared_"]["stores_"]["fibers_"]["slabs_"]):
            first = gdb.Value(int(slab) + SLAB_HEADER_BYTES).cast(record.pointer())
            for i in range(count):
                fiber = Fiber(first[i])
                if fiber.state != FREE:
                    yield fiber


def word_at(address):
    memory = gdb.selected_inferior().read_memory(address, 8)
    return int.from_bytes(bytes(memory), "little")


def saved_registers(context):
    """Returns the known registers of a parked fiber."""
    try:
        saved_type = gdb.lookup_type("weft::fibers::SavedContext")
    except gdb.error:
        saved_type = None
    if saved_type is None or not saved_type.fields():  # Boost.Context is used.
        registers = {name: word_at(context + offset) for name, offset in BOOST.items()}
        return registers | {"rsp": context + BOOST_BYTES}
    saved = gdb.Value(context).cast(saved_type.pointer())
    return {"rsp": int(saved["stack_pointer"]), "rip": int(saved["resume"]),
            "rbp": int(saved["frame_pointer"])}


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """Makes the newest frame of the selected thread return into a parked fiber."""

    def __init__(self):
        super().__init__("weft fiber")
        self.registers = None
        self.here = None

    def __call__(self, pending):
        if self.registers is None:
            return None
        sp, pc = pending.read_register("rsp"), pending.read_register("rip")
        if (int(sp), int(pc)) != self.here:
            return None
        info = pending.create_unwind_info(FrameId(sp, pc))
        word = gdb.lookup_type("unsigned long")
        for register, value in self.registers.items():
            info.add_saved_register(register, gdb.Value(value).cast(word))
        return info

    def innermost_frame(self):
        """Returns the fiber's first frame, which follows frame 0 and the calls inlined in frame 0."""
        frame = gdb.newest_frame()
        while frame is not None and frame.pc() != self.registers["rip"]:
            frame = frame.older()
        if frame is None:
            raise gdb.GdbError("gdb cannot unwind the fiber's stack")
        return frame

    def run(self, context, command):
        frame = gdb.newest_frame()
        self.here = (int(frame.read_register("rsp")), int(frame.read_register("rip")))
        self.registers = saved_registers(context)
        gdb.invalidate_cached_frames()
        try:
            inner = self.innermost_frame()
            inner.select()
            if is_backtrace(command):
                print_backtrace(command, inner.level())
            else:
                gdb.execute(command)
        finally:
            self.registers = None
            gdb.invalidate_cached_frames()


def is_backtrace(command):
    word = command.split()[0]
    return word in ("bt", "where") or "backtrace".startswith(word) and len(word) > 2


def print_backtrace(command, first):
    """Prints the frames from `first` on, numbered from 0. The earlier frames belong to the selected
    thread."""
    word, *options = command.split()
    options = [str(int(o) + first) if o.isdigit() else o for o in options]
    shown = False
    for line in gdb.execute(" ".join([word, *options]), to_string=True).splitlines():
        frame = re.match(r"#(\d+)( *)", line)
        if frame is not None:
            number_in_fiber = int(frame[1]) - first
            shown = number_in_fiber >= 0
            line = f"#{number_in_fiber:<{len(frame[0]) - 1}}{line[frame.end():]}"
        if shown or not line.startswith(("#", " ")):
            print(line)


unwinder = FiberUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


class InfoFibers(gdb.Command):
    """Prints one line for each fiber of the process."""

    def __init__(self):
        super().__init__("info fibers", gdb.COMMAND_STATUS)

    def invoke(self, _arguments, _from_tty):
        for fiber in all_fibers():
            print(fiber.describe())


def run_on_its_thread(fiber, command):
    """Runs the command on the thread whose stack pointer is in the fiber's stack."""
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = gdb.newest_frame()
        if int(frame.read_register("rsp")) in fiber.stack:
            frame.select()
            gdb.execute(command)
            return
    print("no thread has the fiber's registers: the fiber is about to start or to end")


def run_on(fibers, command):
    """Runs a command on the stack of each fiber, and selects the previous thread and frame again."""
    thread = gdb.selected_thread()
    if thread is None:
        raise gdb.GdbError("no program is running, and no core file is loaded")
    frame = gdb.selected_frame().level()
    try:
        for fiber in fibers:
            print(fiber.describe())
            if fiber.state == PARKED and fiber.context != 0:
                unwinder.run(fiber.context, command)
            elif fiber.state == RUNNING:
                run_on_its_thread(fiber, command)
            thread.switch()
    except gdb.error as error:  # The command failed; gdb prints its error.
        raise gdb.GdbError(str(error)) from error
    finally:
        thread.switch()
        gdb.execute(f"frame {frame}", to_string=True)


class FiberCommand(gdb.Command):
    """fiber ID [COMMAND]: runs COMMAND, by default `bt`, on the stack of a parked or running fiber.
A backtrace numbers the fiber's frames from 0. For other commands they follow the frames of the
selected thread, and the fiber's innermost frame is selected. `info fibers` shows the IDs."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)

    def invoke(self, arguments, _from_tty):
        which, _, command = arguments.strip().partition(" ")
        found = [fiber for fiber in all_fibers() if which == "all" or str(fiber.id) == which]
        if not found:
            raise gdb.GdbError("no such fiber; see `info fibers`")
        run_on(found, command.strip() or "bt")


class FiberApply(gdb.Command):
    """fiber apply all|ID... COMMAND: runs COMMAND on the stack of each of these fibers, as `fiber ID
COMMAND` does. An ID may be a range, such as 3-7."""

    def __init__(self):
        super().__init__("fiber apply", gdb.COMMAND_STACK)

    def invoke(self, arguments, _from_tty):
        words, wanted = arguments.split(), []
        if words[:1] == ["all"]:
            words.pop(0)
            wanted = None
        while wanted is not None and words and re.fullmatch(r"\d+(-\d+)?", words[0]):
            first, _, last = words.pop(0).partition("-")
            wanted.append(range(int(first), int(last or first) + 1))
        if wanted == [] or not words:
            raise gdb.GdbError("fiber apply all|ID... COMMAND")
        run_on([fiber for fiber in all_fibers()
                if wanted is None or any(fiber.id in some for some in wanted)], " ".join(words))


def loaded(core):
    """Returns the memory segments of a core file, sorted: (first address, end address, file offset)."""
    core.seek(0)
    head = core.read(64)
    first, sections = struct.unpack_from("<QQ", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    if count == 0xFFFF:  # The first section has the count, which is too large for the head.
        core.seek(sections + 44)
        count = struct.unpack("<I", core.read(4))[0]
    core.seek(first)
    table = core.read(size * count)
    rows = [struct.unpack_from("<IIQQQQ", table, i * size) for i in range(count)]
    return sorted((address, address + length, offset)
                  for kind, _, offset, address, _, length in rows if kind == PT_LOAD)


def add_stack(core, segments, fiber):
    """Copies the used part of a parked fiber's stack, or the whole stack of another fiber."""
    first = fiber.context if fiber.state == PARKED and fiber.context else fiber.stack.start
    first &= -PAGE
    last = (fiber.end + PAGE - 1) & -PAGE
    i = bisect.bisect_right(segments, first, key=lambda segment: segment[0]) - 1
    if i < 0 or last > segments[i][1]:
        return False
    core.seek(segments[i][2] + first - segments[i][0])
    core.write(gdb.selected_inferior().read_memory(first, last - first))
    return True


class FiberCore(gdb.Command):
    """fiber core FILE: writes a core file, as generate-core-file does, with the stacks of fibers.
Since Linux 6.13 the guard of a stack is an unreadable part of a mapping. gdb itself omits the rest
of that mapping from core files."""

    def __init__(self):
        super().__init__("fiber core", gdb.COMMAND_STACK, gdb.COMPLETE_FILENAME)

    def invoke(self, arguments, _from_tty):
        path = os.path.expanduser(arguments.strip())
        if not path:
            raise gdb.GdbError("fiber core FILE")
        gdb.execute("generate-core-file " + path)
        started = [fiber for fiber in all_fibers() if fiber.end != 0]
        with open(path, "r+b") as core:
            segments = loaded(core)
            added = sum(add_stack(core, segments, fiber) for fiber in started)
        print(f"the core file has {added} of {len(started)} stacks of fibers")


InfoFibers()
FiberCommand()
FiberApply()
FiberCore()
