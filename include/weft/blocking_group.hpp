// Bounded sets of threads for calls that block.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/atomic.hpp>
#include <weft/detail/blocking.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

namespace weft {

class BlockingGroup;

namespace detail {

// One call of a group. It belongs to the caller and the helper together, as either may be the last
// to need it.
// Order
//   [owner]  the first to leave subtracts (acq_rel) -> the second to leave (acq_rel) frees it.
struct GroupCall : BlockingCall {
  GroupCall(void (*how)(BlockingCall&) noexcept, BlockingGroup& home) noexcept
      : BlockingCall{how}, group(home) {}
  GroupCall(const GroupCall&) = delete;
  GroupCall& operator=(const GroupCall&) = delete;
  virtual ~GroupCall() = default;

  void leave() noexcept {
    if (owners.fetch_sub(1, acq_rel) == 1) delete this;  // [owner]
  }

  BlockingGroup& group;
  Atomic<std::uint32_t> owners{2};
  SpinLock lock;
  WaitList waiters WEFT_GUARDED_BY(lock);
  bool done WEFT_GUARDED_BY(lock) = false;
};

template <class F>
struct GroupCallOf final : GroupCall {
  using Value = std::invoke_result_t<F&>;
  using Stored = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;

  GroupCallOf(BlockingGroup& home, F function)
      : GroupCall(&GroupCallOf::make_call, home), callable(std::move(function)) {}

  void call() noexcept {
    WEFT_TRY {
      if constexpr (std::is_void_v<Value>) {
        callable();
        value.emplace();
      } else {
        value.emplace(callable());
      }
    }
    WEFT_CATCH_ALL { exception = std::current_exception(); }
  }
  static void make_call(BlockingCall& self) noexcept;

  F callable;
  std::optional<Stored> value;
  std::exception_ptr exception;
};

}  // namespace detail

struct BlockingGroupOptions {
  std::string name = "group";   // Its threads have the first characters of it as their names.
  std::size_t max_threads = 4;  // At least 1.
  // Calls that may wait for a thread; the group refuses more with Errc::full. A caller that gives
  // up before its call has begun makes room.
  std::size_t max_waiting = 256;
  // A thread without work ends after this long.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
};

// Each figure may be stale when it is returned.
struct BlockingGroupStats {
  std::size_t threads = 0;
  std::size_t running = 0;  // Threads are making these calls, including calls that were given up.
  std::size_t waiting = 0;  // Calls that have not begun, and may begin.
  std::uint64_t finished = 0;  // Calls made.
  std::uint64_t given_up = 0;  // Calls whose caller did not wait to the end.
  std::uint64_t refused = 0;   // Errc::full.
};

// Threads of their own for one kind of call that blocks: name resolution, files, a database. Unlike
// the threads of blocking(), which all share, they can all hang without taking others' with them,
// and the wait for them can end early. Needs no Runtime: plain threads may use it, too. Call it
// from fibers and plain threads, any number at a time; calls park, throw and synchronize where they
// say so.
class BlockingGroup {
 public:
  // Starts no thread yet; the first calls do.
  explicit BlockingGroup(BlockingGroupOptions options = {});
  // Waits for the calls that have begun, including calls that were given up; no caller may be
  // waiting. Parks a fiber meanwhile: a thread of blocking() waits, or, if there is none to be had,
  // its worker.
  ~BlockingGroup();
  // Not of a const one, which g++ would make of the braces in BlockingGroup({}).
  BlockingGroup(BlockingGroup&) = delete;
  BlockingGroup& operator=(const BlockingGroup&) = delete;

  // Makes the call on a thread of the group, parks meanwhile, and returns its result or throws its
  // exception. It is moved to the heap, as it may go on when the wait is over: it must own all that
  // it uses. Ended by `until` before it has begun, it is destroyed at once; later, its result is
  // dropped.
  // Call it from fibers and plain threads. Errors: Errc::timed_out, cancelled; Errc::full; the
  // system's, if it has no thread. Throws std::bad_alloc.
  // Synchronizes: what comes before with the call, and its end with a return without error.
  template <std::invocable F>
  auto run(F callable, const Until& until = {}) -> Result<typename detail::GroupCallOf<F>::Stored> {
    Result<typename detail::GroupCallOf<F>::Stored> result;
    const Owner<detail::GroupCallOf<F>> call(
        new detail::GroupCallOf<F>(*this, std::move(callable)));
    result.error = wait_for(*call, until);
    if (result.error) return result;
    if (call->exception) std::rethrow_exception(std::move(call->exception));
    result.value = std::move(*call->value);
    return result;
  }

  // Each number may be stale when they return. From anywhere; never parks.
  [[nodiscard]] BlockingGroupStats stats() const noexcept;
  // As its options say. From anywhere, as long as the group lives.
  [[nodiscard]] const std::string& name() const noexcept;

  // For the calls: a thread makes one now.
  static void begin(detail::GroupCall& call) noexcept;
  // Ends a call that has been made: the caller that waits for it goes on. For the calls.
  static void finish(detail::GroupCall& call) noexcept;

 private:
  struct Leave {
    void operator()(detail::GroupCall* call) const noexcept { call->leave(); }
  };
  template <class Call>
  using Owner = std::unique_ptr<Call, Leave>;

  std::error_code wait_for(detail::GroupCall& call, const Until& until);

  class Core;
  std::unique_ptr<Core> core_;
};

template <class F>
void detail::GroupCallOf<F>::make_call(BlockingCall& self) noexcept {
  auto& call = static_cast<GroupCallOf&>(self);
  BlockingGroup::begin(call);
  call.call();
  BlockingGroup::finish(call);
}

}  // namespace weft
