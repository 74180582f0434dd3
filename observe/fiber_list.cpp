#include "observe/fiber_list.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <system_error>
#include <tuple>
#include <weft/detail/waist.hpp>
#include <weft/this_fiber.hpp>

#include "runtime/dump.hpp"
#include "runtime/symbols.hpp"
#include "scheduler/registry.hpp"
#include "scheduler/upkeep/census.hpp"

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

// Relaxed throughout: the values may be old. A fiber may end meanwhile, and its stack may be given
// back. Memory of stacks stays mapped, so at worst this reads another fiber's name.
FiberEntry read_entry(const Fiber& fiber, FiberState state, const scheduler::Shared& shared,
                      std::int64_t now) {
  FiberEntry entry;
  entry.record = &fiber;
  entry.runtime = shared.number();
  entry.state = name_of(state);
  entry.age = scheduler::age_of(fiber, shared, now);
  if (state == FiberState::parked || state == FiberState::inlining) {
    entry.reason = to_string(static_cast<detail::WaitReason>(fiber.reason()));
  }
  entry.type = fiber.task.type_hint();
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

int class_of(std::chrono::nanoseconds age) {
  using namespace std::chrono;
  if (age < minutes(1)) return 0;
  if (age < minutes(10)) return 1;
  if (age < hours(1)) return 2;
  return age < days(1) ? 3 : 4;
}

// A fiber may handle another request by now, so the list shows its recent request.
void name_requests(std::vector<FiberEntry>& fibers) {
  const auto requests = runtime::describe_requests(Deadline::never());
  if (requests.empty()) return;
  for (FiberEntry& fiber : fibers) {
    const auto found = requests.find(fiber.id);
    if (found == requests.end()) continue;
    fiber.request = found->second.text;
    fiber.request_began = found->second.began;
  }
}

}  // namespace

std::vector<FiberEntry> list_fibers() {
  std::vector<FiberEntry> entries;
  (void)scheduler::visit_registry(Deadline::never(), [&](scheduler::Scheduler& scheduler) {
    const scheduler::Shared& shared = scheduler.shared();
    const std::int64_t now = Deadline::now_nanoseconds();
    (void)scheduler.shared().fibers().for_each_until(Deadline::never(), [&](const Fiber& fiber) {
      const FiberState state = fiber.state.load(relaxed);
      if (state != FiberState::free) entries.push_back(read_entry(fiber, state, shared, now));
      return true;
    });
  });
  name_requests(entries);
  return entries;
}

std::vector<FiberGroup> group_fibers(const std::vector<FiberEntry>& fibers) {
  using Key =
      std::tuple<const void*, const std::type_info*, std::string_view, std::string_view, int>;
  std::map<Key, std::size_t> places;
  std::vector<FiberGroup> groups;
  for (const FiberEntry& fiber : fibers) {
    const Key key{fiber.site, fiber.type, fiber.state, fiber.reason, class_of(fiber.age)};
    const auto [place, is_new] = places.try_emplace(key, groups.size());
    if (is_new) groups.push_back({fiber, 0});
    FiberGroup& group = groups[place->second];
    ++group.count;
    if (fiber.age > group.example.age) group.example = fiber;
  }
  std::ranges::stable_sort(groups, std::greater(), &FiberGroup::count);
  return groups;
}

std::string describe_task(const FiberEntry& fiber) {
  return fiber.type == nullptr ? std::string() : runtime::describe_type(*fiber.type);
}

std::string describe_site(const FiberEntry& fiber) {
  if (fiber.site == nullptr) return {};
  // The call itself precedes its return address.
  return runtime::describe_address(static_cast<const char*>(fiber.site) - 1);
}

void call_with_enough_stack(const std::function<void()>& call) {
  if (!this_fiber::is_fiber()) return call();
  std::future<void> called;
  try {
    called = std::async(std::launch::async, call);
  } catch (const std::system_error& refusal) {
    throw std::system_error(refusal.code(), "weft: no thread is available to describe fibers");
  }
  called.get();
}

}  // namespace weft::observe
