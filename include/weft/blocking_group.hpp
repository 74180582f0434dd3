// Makes blocking calls on limited sets of threads.
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
#include <weft/detail/context_node.hpp>
#include <weft/detail/context_share.hpp>
#include <weft/detail/exceptions.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/result.hpp>
#include <weft/until.hpp>

namespace weft {

class BlockingGroup;

namespace detail {

// One call on a group's thread. The caller and the thread share it until both have called leave().
// Order
//   [owner] The first leave() decrements owners (release) -> the second leave() decrements owners
//            (acquire): its caller sees all uses of the object, and deletes the object.
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

template <class Value>
using StoredOf = std::conditional_t<std::is_void_v<Value>, std::monostate, Value>;

template <class F>
struct GroupCallOf final : GroupCall {
  using Value = std::invoke_result_t<F&>;
  using Stored = StoredOf<Value>;

  GroupCallOf(BlockingGroup& home, F function)
      : GroupCall(&GroupCallOf::make_call, home), callable(std::move(function)) {}

  void call() noexcept {
    {
      std::optional<ContextNode> carried;
      if (context) carried.emplace(context.context());
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
    context.reset();
  }
  static void make_call(BlockingCall& self) noexcept;

  F callable;
  ContextShare context = ContextShare::of_caller();
  std::optional<Stored> value;
  std::exception_ptr exception;
};

}  // namespace detail

struct BlockingGroupOptions {
  std::string name = "group";   // Thread names contain the first characters of `name`.
  std::size_t max_threads = 4;  // At least 1.
  // The maximum number of calls that wait for a thread; the group refuses further calls with
  // Errc::full. If the caller of a waiting call stops waiting, the call leaves the queue.
  std::size_t max_waiting = 256;
  // The time after which an idle thread ends.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
};

// The statistics of a BlockingGroup, which may be stale.
struct BlockingGroupStats {
  std::size_t threads = 0;
  std::size_t running = 0;     // Calls in progress, even if the caller has stopped waiting.
  std::size_t waiting = 0;     // Calls that have not begun yet.
  std::uint64_t finished = 0;  // Calls that have ended.
  std::uint64_t given_up = 0;  // Calls whose caller stopped waiting before the call ended.
  std::uint64_t refused = 0;   // Calls that were refused with Errc::full.
};

// A limited set of threads for one kind of blocking call, such as name resolution or file access.
// If all threads of a group hang, the threads of blocking() and of other groups are not affected. A
// caller can stop waiting early. Plain threads may use a group without a Runtime.
// Context: fibers and plain threads; run() and the destructor park.
class BlockingGroup {
 public:
  // Creates a group without threads; calls start threads on demand.
  // Throws: std::bad_alloc.
  explicit BlockingGroup(BlockingGroupOptions options = {});
  // Waits for all calls that have begun. No caller may be in run(). On a fiber, the wait runs on a
  // thread of blocking(). If that thread cannot start, the fiber blocks its worker.
  ~BlockingGroup();
  // With a const parameter, BlockingGroup({}) would be ambiguous for g++.
  BlockingGroup(BlockingGroup&) = delete;
  BlockingGroup& operator=(const BlockingGroup&) = delete;

  // Runs `callable` on a thread of the group, in the caller's context (context.hpp), and returns
  // its result. `callable` must own everything that it uses, because it is moved to the heap and
  // may outlive the wait. If `until` ends the wait before the call begins, `callable` never runs.
  // If `until` ends the wait later, the call continues to its end, but its result is dropped.
  // Errors: Errc::timed_out, cancelled, full; the system's error if the first thread cannot start.
  // Throws: what `callable` throws, what moving it or its result throws, std::bad_alloc.
  // Ordering: run() synchronizes with the start of the call. The end of the call synchronizes with
  // a successful return of run().
  template <std::invocable F>
  auto run(F callable, const Until& until = Until::ambient())
      -> Result<detail::StoredOf<std::invoke_result_t<F&>>> {
    Result<typename detail::GroupCallOf<F>::Stored> result;
    const Owner<detail::GroupCallOf<F>> call(
        new detail::GroupCallOf<F>(*this, std::move(callable)));
    result.error = wait_for(*call, until);
    if (result.error) return result;
    if (call->exception) std::rethrow_exception(std::move(call->exception));
    result.value = std::move(*call->value);
    return result;
  }
  // This overload exists only for its error message.
  template <class F>
  requires(!std::invocable<F>) Result<void> run(F, const Until& = {}) {
    static_assert(detail::kFits<F>,
                  "weft::BlockingGroup::run: the callable must take no arguments");
    return {};
  }

  // Returns the statistics, which may be stale.
  [[nodiscard]] BlockingGroupStats stats() const noexcept;
  // Returns BlockingGroupOptions::name.
  [[nodiscard]] const std::string& name() const noexcept;

  // Marks a call as begun. Only GroupCallOf::make_call() uses this function.
  static void begin(detail::GroupCall& call) noexcept;
  // Marks a call as done and wakes its caller. Only GroupCallOf::make_call() uses this function.
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
