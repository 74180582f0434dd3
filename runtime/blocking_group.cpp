#include <weft/blocking_group.hpp>
#include <weft/error.hpp>

#include "scheduler/blocking_pool.hpp"

namespace weft {

using detail::relaxed;

// Relaxed, all of them: they are only counted; max_waiting is met to within the calls that come at
// the same moment.
class BlockingGroup::Core {
 public:
  explicit Core(BlockingGroupOptions given)
      : options(std::move(given)), pool(options.max_threads, options.idle_time, options.name) {}

  const BlockingGroupOptions options;
  detail::Atomic<std::size_t> waiting{0};
  detail::Atomic<std::size_t> running{0};
  detail::Atomic<std::uint64_t> finished{0};
  detail::Atomic<std::uint64_t> given_up{0};
  detail::Atomic<std::uint64_t> refused{0};
  scheduler::BlockingPool pool;  // Ends first: its threads use all the others.
};

BlockingGroup::BlockingGroup(BlockingGroupOptions options)
    : core_(std::make_unique<Core>(std::move(options))) {}
BlockingGroup::~BlockingGroup() = default;

const std::string& BlockingGroup::name() const noexcept { return core_->options.name; }

bool BlockingGroup::begin(detail::GroupCall& call) noexcept {
  Core& core = *call.group.core_;
  core.waiting.fetch_sub(1, relaxed);
  core.running.fetch_add(1, relaxed);
  call.lock.lock();
  const bool wanted = !call.given_up;
  call.lock.unlock();
  return wanted;
}

void BlockingGroup::finish(detail::GroupCall& call) noexcept {
  Core& core = *call.group.core_;
  core.running.fetch_sub(1, relaxed);
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
  if (until.is_over()) refused = until.error();
  if (!refused && core.waiting.fetch_add(1, relaxed) >= core.options.max_waiting) {
    core.waiting.fetch_sub(1, relaxed);
    core.refused.fetch_add(1, relaxed);
    refused = Errc::full;
  }
  if (!refused) {
    try {
      core.pool.expect();
    } catch (const std::system_error& failure) {
      core.waiting.fetch_sub(1, relaxed);
      refused = failure.code();
    }
  }
  if (refused) {
    call.leave();  // For the helper that there is none of.
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
  call.lock.lock();
  const bool done = call.done;
  call.given_up = !done;
  call.lock.unlock();
  if (done) return {};
  core.given_up.fetch_add(1, relaxed);
  return winner == detail::Claim::kStop ? Errc::cancelled : Errc::timed_out;
}

BlockingGroupStats BlockingGroup::stats() const noexcept {
  Core& core = *core_;
  return {core.pool.size_hint(),       core.running.load(relaxed),  core.waiting.load(relaxed),
          core.finished.load(relaxed), core.given_up.load(relaxed), core.refused.load(relaxed)};
}

}  // namespace weft
