// Passes tasks to the core, and blocks the caller or runs its task if the core requires it.
#include <weft/detail/pool_entry.hpp>

#include <optional>
#include <weft/context.hpp>
#include <weft/detail/blocking_scope.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/stack_room.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/go.hpp>

#include "pool/core/pool_core.hpp"
#include "pool/nested/lent_slot.hpp"
#include "pool/nested/worker_registry.hpp"

namespace weft::detail {

namespace {

void run_in_caller(pool::PoolCore& core, PoolItem& item, std::uint64_t number,
                   pool::Registration* outer) noexcept {
  // Hides the caller's context, because a task must see only its own context, wherever it runs.
  std::optional<this_fiber::NoCancel> without_context;
  if (ContextNode::may_have_one()) without_context.emplace();
  const pool::Registration registration(core, item, pool::Registration::Slot::none, outer);
  core.run_in_caller(item, number);
}

// Runs the task in a new fiber on behalf of the caller, and waits for the task. Returns false if
// the fiber could not be started.
bool run_on_new_stack(pool::PoolCore& core, PoolItem& item, std::uint64_t number,
                      pool::Registration* outer, std::size_t stack_size) noexcept {
  WEFT_TRY {
    weft::spawn({.stack_size = stack_size}, [&] {
      run_in_caller(core, item, number, outer);
    }).join();
    return true;
  }
  WEFT_CATCH_ALL { return false; }
}

}  // namespace

bool PoolEntry::enqueue_at_once(pool::PoolCore& core, PoolItem& item, Room room) {
  if (room != Room::now) give_way_if_due();
  return core.submit_at_once(item);
}
Accepted PoolEntry::enqueue(pool::PoolCore& core, PoolItem& item, Room room, const Until& until) {
  if (enqueue_at_once(core, item, room)) [[likely]]
    return {};
  return enqueue_slowly(core, item, room, until);
}

Accepted PoolEntry::enqueue_slowly(pool::PoolCore& core, PoolItem& item, Room room,
                                   const Until& until) {
  using Next = pool::PoolCore::Next;
  if (const std::error_code refusal = core.check(item)) return refusal;
  OnFull when_full = core.options().on_full;
  if (room != Room::as_configured) when_full = room == Room::now ? OnFull::reject : OnFull::block;
  pool::Registration* const caller = pool::Registration::of_caller();
  // A caller that is a task of a pool first tries core.submit(), and releases its slot only if it
  // has to block. Other callers have no slot to keep, so they may block at once.
  if (when_full == OnFull::block && caller == nullptr) return core.submit_blocking(item, until);
  const pool::PoolCore::Answer answer = core.submit(item, when_full);
  if (answer.next == Next::nothing) return answer.accepted;
  if (answer.next == Next::block) {
    const BlockingScope scope(&core.root());
    return core.submit_blocking(item, until);
  }
  // A task that runs in submit() may itself call submit(), which runs the new task inside that
  // call, and so on. If more than half of the stack is used, the call runs its task on a new stack.
  const StackRoom stack = stack_room();
  if (stack.left >= stack.size / 2 ||
      !run_on_new_stack(core, item, answer.number, caller, stack.size)) {
    run_in_caller(core, item, answer.number, caller);
  }
  return {};
}

Accepted PoolEntry::enqueue_and_wait(pool::PoolCore& core, PoolItem& item, PoolJob& job) {
  pool::Registration* const caller = pool::Registration::of_caller();
  if (pool::run_in_slot_of(caller, core, item)) return {};
  const Accepted accepted = enqueue(core, item, Room::as_configured, {});
  if (accepted) (void)job.wait_until({}, caller);
  return accepted;
}

Accepted PoolEntry::enqueue(pool::PoolCore& core, PoolItem& item, const SubmitOptions& options,
                            Room room, const Until& until) {
  if (!options.stop.stop_possible()) return enqueue(core, item, room, until);
  if (!until.can_be_stopped()) {
    return enqueue(core, item, room, Until(until.deadline(), options.stop));
  }
  // Combines the two stop requests, so that either one ends the wait.
  const std::stop_source either;
  StopRegistration<RequestStop> of_call;
  StopRegistration<RequestStop> of_task;
  of_call.add(*until.token(), RequestStop{either});
  of_task.add(options.stop, RequestStop{either});
  return enqueue(core, item, room, Until(until.deadline(), either.get_token()));
}

Result<std::size_t> PoolEntry::enqueue(pool::PoolCore& core, std::span<PoolItem> items, Room room,
                                       const Until& until) {
  for (PoolItem& item : items) core.runner().stamp(item);
  std::size_t accepted = 0;
  for (;;) {
    // Tasks that cannot simply be pushed are submitted one at a time.
    accepted += core.push_some(items.subspan(accepted));
    if (accepted == items.size()) return {accepted, {}};
    const Accepted next = enqueue(core, items[accepted], room, until);
    if (!next) return {accepted, next.error};
    ++accepted;
  }
}

const pool::PoolCore& PoolEntry::root_of(const pool::PoolCore& core) noexcept {
  return core.root();
}
std::stop_token PoolEntry::stop_token_of(pool::PoolCore& core) {
  std::stop_token token = core.stop_token();
  if (!token.stop_possible()) WEFT_THROW(std::bad_alloc());
  return token;
}
AttributedTask& PoolEntry::take_spare_task(pool::PoolCore& core) { return core.take_spare_task(); }
void PoolEntry::throw_refusal(const pool::PoolCore& core, std::error_code why) {
  const std::string& name = core.options().name;
  WEFT_THROW(std::system_error(why, "weft::FiberPool" + (name.empty() ? "" : " '" + name + "'")));
}

}  // namespace weft::detail
