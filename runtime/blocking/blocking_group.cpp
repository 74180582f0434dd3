#include <weft/blocking_group.hpp>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/error.hpp>
#include <weft/this_fiber.hpp>

#include "runtime/blocking/blocking_pool.hpp"

namespace weft {

using detail::relaxed;

// All are relaxed, because they are only counts.
class BlockingGroup::Core {
 public:
  explicit Core(BlockingGroupOptions given)
      : options(std::move(given)), pool(options.max_threads, options.idle_time, options.name) {}

  // Counts one more call, unless the limit of running and waiting calls is reached.
  [[nodiscard]] bool enter() noexcept {
    std::size_t before = inside.load(relaxed);
    do {
      if (before >= options.max_threads && before - options.max_threads >= options.max_waiting) {
        return false;
      }
    } while (!inside.compare_exchange_weak(before, before + 1, relaxed, relaxed));
    return true;
  }
  void leave() noexcept { inside.fetch_sub(1, relaxed); }

  const BlockingGroupOptions options;
  detail::Atomic<std::size_t> inside{0};  // Waiting and running calls.
  detail::Atomic<std::size_t> running{0};
  detail::Atomic<std::uint64_t> finished{0};
  detail::Atomic<std::uint64_t> given_up{0};
  detail::Atomic<std::uint64_t> refused{0};
  runtime::BlockingPool pool;  // Destroyed first: its threads use the other members.
};

BlockingGroup::BlockingGroup(BlockingGroupOptions options)
    : core_(std::make_unique<Core>(std::move(options))) {}
BlockingGroup::~BlockingGroup() {
  if (!this_fiber::is_fiber() || core_->pool.size_hint() == 0) return;
  try {
    // core_ is not reset() first, because calls that end meanwhile read it.
    blocking([this] { delete core_.get(); });
    (void)core_.release();
  } catch (...) {
    // If there is no helper, or no memory for the error, this thread ends the group.
  }
}

const std::string& BlockingGroup::name() const noexcept { return core_->options.name; }

void BlockingGroup::begin(detail::GroupCall& call) noexcept {
  call.group.core_->running.fetch_add(1, relaxed);
}

void BlockingGroup::finish(detail::GroupCall& call) noexcept {
  Core& core = *call.group.core_;
  core.running.fetch_sub(1, relaxed);
  core.leave();  // Happens before the caller continues, because the caller may then return.
  core.finished.fetch_add(1, relaxed);
  call.lock.lock();
  call.done = true;
  const detail::Waiter* waiter = call.waiters.claim_front();
  const detail::Waker waker = waiter != nullptr ? waiter->waker : detail::Waker();
  call.lock.unlock();
  call.leave();
  if (waker) detail::wake(waker);
}

std::error_code BlockingGroup::wait_for(detail::GroupCall& call, const Until& until) {
  Core& core = *core_;
  std::error_code refused;
  if (until.is_over()) refused = until.reason();
  if (!refused && !core.enter()) {
    core.refused.fetch_add(1, relaxed);
    refused = Errc::full;
  }
  if (!refused) {
    refused = core.pool.expect();
    if (refused) core.leave();
  }
  if (refused) {
    call.leave();  // Runs in place of the missing helper.
    return refused;
  }
  core.pool.submit(call);
  call.lock.lock();
  if (call.done) {
    call.lock.unlock();
    return {};
  }
  detail::Waiter self;
  const detail::Claim::Winner winner =
      wait_in_until(call.waiters, call.lock, self, detail::WaitReason::blocking, until);
  if (winner == detail::Claim::kNotifier) return {};
  if (core.pool.withdraw(call)) {
    core.leave();
    call.leave();
  } else {
    const detail::SpinGuard lock(call.lock);
    if (call.done) return {};
  }
  core.given_up.fetch_add(1, relaxed);
  return winner == detail::Claim::kStop ? Errc::cancelled : Errc::timed_out;
}

BlockingGroupStats BlockingGroup::stats() const noexcept {
  Core& core = *core_;
  const std::size_t running = core.running.load(relaxed);
  const std::size_t inside = core.inside.load(relaxed);
  return {core.pool.size_hint(),
          running,
          inside - std::min(running, inside),  // Either number may be more recent.
          core.finished.load(relaxed),
          core.given_up.load(relaxed),
          core.refused.load(relaxed)};
}

}  // namespace weft
