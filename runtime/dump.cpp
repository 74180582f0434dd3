#include "runtime/dump.hpp"

#include <iostream>
#include <ostream>
#include <weft/detail/waist.hpp>

namespace weft::runtime {

namespace {

using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;

// More lines than anybody reads; the heading has the whole number.
constexpr std::size_t kMostLines = 200;

// Relaxed throughout: a dump shows what was written some time ago. A fiber may end meanwhile and
// its stack be given back; its memory stays mapped, so at worst a 0 or another fiber's name is
// read.
void describe(const Fiber& fiber, std::ostream& out) {
  out << "  fiber ";
  if (const fibers::Stack* stack = fiber.stack.load(detail::acquire)) {  // [bound]
    out << stack->fiber_id.load(relaxed) << " '" << stack->name.copy().data() << '\'';
  } else {
    out << "(not started)";
  }
  switch (fiber.state.load(relaxed)) {
    case FiberState::free:
      out << " has ended";
      break;
    case FiberState::ready:
      out << " is ready";
      break;
    case FiberState::running:
      out << " is running";
      break;
    case FiberState::parked:
      out << " is parked: "
          << to_string(static_cast<detail::WaitReason>(fiber.wait_reason.load(relaxed)));
      break;
  }
  out << '\n';
}

}  // namespace

void dump(scheduler::Scheduler& scheduler, std::ostream& out) {
  out << "weft: " << scheduler.live() << " fibers on " << scheduler.workers().size()
      << " workers\n";
  std::size_t lines = 0;
  scheduler.fibers().for_each([&](const Fiber& fiber) {
    if (fiber.state.load(relaxed) == FiberState::free || ++lines > kMostLines) return;
    describe(fiber, out);
  });
  if (lines > kMostLines) out << "  and " << lines - kMostLines << " more\n";
}

void dump_to_stderr(scheduler::Scheduler& scheduler) { dump(scheduler, std::cerr); }

}  // namespace weft::runtime
