#include "observe/fiber_list.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <system_error>
#include <tuple>
#include <weft/detail/waist.hpp>
#include <weft/this_fiber.hpp>

#include "runtime/symbols.hpp"
#include "scheduler/registry.hpp"

namespace weft::observe {

namespace {

using detail::acquire;
using detail::relaxed;
using fibers::Fiber;
using fibers::FiberState;

const char* name_of(FiberState state) {
  switch (state) {
    case FiberState::free:
      break;
    case FiberState::ready:
      return "ready";
    case FiberState::running:
      return "running";
    case FiberState::parked:
      return "parked";
    case FiberState::inlining:
      return "inlining";
  }
  return "";
}

// Relaxed throughout: what was written some time ago. A fiber may end meanwhile, and its stack be
// given back; memory of stacks stays mapped, so at worst another fiber's name is read.
FiberEntry read_entry(const Fiber& fiber, FiberState state, unsigned runtime) {
  FiberEntry entry;
  entry.record = &fiber;
  entry.runtime = runtime;
  entry.state = name_of(state);
  if (state == FiberState::parked || state == FiberState::inlining) {
    entry.reason = to_string(static_cast<detail::WaitReason>(fiber.wait_reason.load(relaxed)));
  }
  const std::type_info* type = fiber.task.type_hint();
  if (type != nullptr && *type != typeid(void)) entry.type = type;
  entry.site = fiber.site_hint();
  const fibers::Stack* stack = fiber.stack.load(acquire);  // [bound]
  if (stack == nullptr) return entry;
  const std::uint64_t id = stack->fiber_id.load(relaxed);
  const auto name = stack->name.copy();
  if (fiber.stack.load(acquire) != stack) return entry;  // [bound]
  entry.has_started = true;
  entry.id = id;
  entry.name = name.data();
  return entry;
}

}  // namespace

std::vector<FiberEntry> list_fibers() {
  std::vector<FiberEntry> entries;
  (void)scheduler::visit_registry(Deadline::never(), [&](scheduler::Scheduler& scheduler) {
    const unsigned runtime = scheduler.shared().number();
    (void)scheduler.shared().fibers().for_each_until(Deadline::never(), [&](const Fiber& fiber) {
      const FiberState state = fiber.state.load(relaxed);
      if (state != FiberState::free) entries.push_back(read_entry(fiber, state, runtime));
      return true;
    });
  });
  return entries;
}

std::vector<FiberGroup> group_fibers(const std::vector<FiberEntry>& fibers) {
  using Key = std::tuple<const void*, const std::type_info*, std::string_view, std::string_view>;
  std::map<Key, std::size_t> places;
  std::vector<FiberGroup> groups;
  for (const FiberEntry& fiber : fibers) {
    const Key key{fiber.site, fiber.type, fiber.state, fiber.reason};
    const auto [place, is_new] = places.try_emplace(key, groups.size());
    if (is_new) groups.push_back({fiber, 0});
    ++groups[place->second].count;
  }
  std::ranges::stable_sort(groups, std::greater(), &FiberGroup::count);
  return groups;
}

std::string describe_task(const FiberEntry& fiber) {
  return fiber.type == nullptr ? std::string() : runtime::describe_type(*fiber.type);
}

std::string describe_site(const FiberEntry& fiber) {
  if (fiber.site == nullptr) return {};
  // The call itself is before the place that it returns to.
  return runtime::describe_address(static_cast<const char*>(fiber.site) - 1);
}

void call_with_enough_stack(const std::function<void()>& call) {
  if (!this_fiber::is_fiber()) return call();
  std::future<void> called;
  try {
    called = std::async(std::launch::async, call);
  } catch (const std::system_error& refusal) {
    throw std::system_error(refusal.code(),
                            "weft: no thread with stack enough to describe fibers is to be had");
  }
  called.get();
}

}  // namespace weft::observe
