// Represents one Asio operation for which a fiber waits; see use_fiber.hpp.
#pragma once

#include <weft/asio/detail/given_up.hpp>
#include <weft/asio/library.hpp>
// <weft/asio/library.hpp> selects the library.
#if defined(WEFT_ASIO_STANDALONE)
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>
#include <asio/strand.hpp>
#include <asio/system_executor.hpp>
#if WEFT_ASIO_HAS_CANCELLATION
#include <asio/cancellation_signal.hpp>
#endif
#else
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#if WEFT_ASIO_HAS_CANCELLATION
#include <boost/asio/cancellation_signal.hpp>
#endif
#endif
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/error.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {
namespace detail {

// --- Limits that end the wait early --------------------------------------------------------------

struct NoLimit {};
template <class Cancel>
struct ByCall {
  Until until;
  Cancel cancel;
};
#if WEFT_ASIO_HAS_CANCELLATION
struct BySignal {
  Until until;
};
#endif

// --- Where the operation begins ------------------------------------------------------------------

struct Anywhere {};  // Uses the executor of the operation.

template <class T>
concept NamesExecutor = requires(const T& it) {
  it.get_executor();
};
template <class T>
concept Wraps = requires(const T& it) {
  it.initiation_;
};  // Matches the initiations of as_tuple and redirect_error.
template <class T>
concept PointsToNamed = requires(const T& it) {
  it->get_executor();
};
template <class T>
concept PointsToStream = requires(const T& it) {
  it->stream().get_executor();
};

// Returns the executor of the first argument that has one. Beast's stream is such an argument.
template <class None = void>
void executor_of_arguments() {
  static_assert(!std::is_void_v<None>,
                "this operation names no executor: call use_fiber.on(executor)");
}
template <class First, class... Rest>
auto executor_of_arguments(const First& first, const Rest&... rest) {
  if constexpr (NamesExecutor<First>) {
    return const_cast<First&>(first).get_executor();
  } else if constexpr (PointsToNamed<First>) {
    return first->get_executor();
  } else if constexpr (PointsToStream<First>) {
    return first->stream().get_executor();
  } else {
    return executor_of_arguments(rest...);
  }
}
// To check a token, Asio's concept instantiates initiate() with an initiation that is never called.
// The body of initiate() must compile too, because a return type of auto is deduced from it.
template <class Initiation>
inline constexpr bool kIsTrial = false;
#if defined(ASIO_HAS_CONCEPTS) || defined(BOOST_ASIO_HAS_CONCEPTS)
template <class... Signatures>
inline constexpr bool kIsTrial<lib::detail::initiation_archetype<Signatures...>> = true;
#endif

template <class Where, class Initiation, class... Args>
auto executor_of(const Where& where, const Initiation& initiation, const Args&... args) {
  if constexpr (!std::is_same_v<Where, Anywhere>) {
    return where;
  } else if constexpr (NamesExecutor<Initiation>) {
    return initiation.get_executor();
  } else if constexpr (Wraps<Initiation>) {
    return executor_of(where, initiation.initiation_, args...);
  } else if constexpr (kIsTrial<Initiation>) {
    return lib::system_executor();
  } else {
    return executor_of_arguments(args...);
  }
}

// --- Results made of a handler's arguments -------------------------------------------------------

template <class... Args>
struct Plain {
  using Value = std::tuple<Args...>;
};
template <>
struct Plain<> {
  using Value = void;
};
template <class One>
struct Plain<One> {
  using Value = One;
};

template <class... Args>
struct Outcome {
  static constexpr bool kHasError = false;
  static constexpr bool kHasException = false;
  using Value = typename Plain<Args...>::Value;
};
template <class... Args>
struct Outcome<ErrorCode, Args...> {
  static constexpr bool kHasError = true;
  static constexpr bool kHasException = false;
  using Value = typename Plain<Args...>::Value;
};
template <class... Args>
struct Outcome<std::exception_ptr, Args...> {
  static constexpr bool kHasError = false;
  static constexpr bool kHasException = true;
  using Value = typename Plain<Args...>::Value;
};

// Returns the error if it is the first argument, or the first element of a tuple from as_tuple.
template <class First, class... Rest>
ErrorCode* error_within(std::tuple<First, Rest...>& values) noexcept {
  if constexpr (std::is_same_v<First, ErrorCode>) {
    return &std::get<0>(values);
  } else if constexpr (requires { std::tuple_size<First>::value; }) {
    return error_within(std::get<0>(values));
  } else {
    return nullptr;
  }
}
inline ErrorCode* error_within(std::tuple<>& /*values*/) noexcept { return nullptr; }
template <class Pair>
ErrorCode* error_within(Pair& /*not a tuple*/) noexcept {
  return nullptr;
}

// --- The operation -------------------------------------------------------------------------------

// Calls `function` on an executor. Holds one count of `pending` until `function` has returned, or
// until the Part is destroyed, if the executor drops it or `function` throws.
template <class F>
class Part {
 public:
  Part(WaitGroup& pending, F& function) noexcept : pending_(&pending), function_(&function) {
    pending.add();
  }
  Part(Part&& other) noexcept
      : pending_(std::exchange(other.pending_, nullptr)), function_(other.function_) {}
  Part& operator=(Part&&) = delete;
  ~Part() {
    if (pending_ != nullptr) GivenUp::end(*pending_);
  }
  void operator()() {
    (*function_)();
    std::exchange(pending_, nullptr)->done();
  }

 private:
  WaitGroup* pending_;
  F* function_;
};

// Lives on the stack of the waiting caller. Invariant: pending_ is the number of calls that have
// not ended (the operation's start, its handler, a cancellation). Once it is 0, no call uses this
// object or the caller's arguments. The last pending_.done() synchronizes with the end of the wait.
template <class Token, class Executor, class... Args>
class FiberOperation {
  using Limit = std::decay_t<decltype(std::declval<Token>().limit())>;
  static constexpr bool kLimited = !std::is_same_v<Limit, NoLimit>;
  // A cancellation must not run concurrently with the operation's own handlers, even on an executor
  // that runs several handlers at once. Therefore an operation with a limit has its own strand.
  using Place = std::conditional_t<kLimited, lib::strand<Executor>, Executor>;

 public:
  FiberOperation(const Token& token, const Executor& executor) : token_(token), place_(executor) {}
  FiberOperation(const FiberOperation&) = delete;
  FiberOperation& operator=(const FiberOperation&) = delete;

  template <class Begin>
  typename Outcome<Args...>::Value run(Begin begin) {
    auto guarded = [&] {
      Handler handler(*this);
      WEFT_TRY { begin(std::move(handler)); }
      WEFT_CATCH_ALL { exception_ = std::current_exception(); }
    };
    lib::dispatch(place_, Part<decltype(guarded)>(pending_, guarded));
    wait();
    return take();
  }

 private:
  // Represents the handler that the operation finally calls. If Asio destroys the handler without
  // calling it, the caller's wait ends with operation_aborted.
  class Handler {
   public:
    using executor_type = Place;
#if WEFT_ASIO_HAS_CANCELLATION
    using cancellation_slot_type = lib::cancellation_slot;
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }
#endif
    [[nodiscard]] executor_type get_executor() const noexcept { return place_; }

    explicit Handler(FiberOperation& operation) noexcept
        : operation_(&operation), place_(operation.place_) {
      operation.pending_.add();
#if WEFT_ASIO_HAS_CANCELLATION
      if constexpr (kLimited) slot_ = operation.signal_.slot();
#endif
    }
    Handler(Handler&& other) noexcept
        : operation_(std::exchange(other.operation_, nullptr)),
          place_(other.place_)
#if WEFT_ASIO_HAS_CANCELLATION
          ,
          slot_(other.slot_)
#endif
    {
    }
    Handler& operator=(Handler&&) = delete;
    ~Handler() {
      if (operation_ != nullptr) GivenUp::end(operation_->pending_);
    }

    template <class... Results>
    void operator()(Results&&... results) {
      operation_->results_.emplace(std::forward<Results>(results)...);
      std::exchange(operation_, nullptr)->pending_.done();
    }

   private:
    FiberOperation* operation_;
    Place place_;
#if WEFT_ASIO_HAS_CANCELLATION
    lib::cancellation_slot slot_;
#endif
  };

  void wait() {
    if constexpr (kLimited) {
      const Until& until = token_.limit().until;
      if (pending_.wait_until(until)) return;
      timed_out_ = until.reason() == Errc::timed_out;
      auto cancel = [this] {
        WEFT_TRY { end_operation(); }
        WEFT_CATCH_ALL { cancel_exception_ = std::current_exception(); }
      };
      // If dispatch() throws, the operation continues. The operation's state is on this stack, so
      // the caller must still wait until the operation ends.
      WEFT_TRY { lib::dispatch(place_, Part<decltype(cancel)>(pending_, cancel)); }
      WEFT_CATCH_ALL { cancel_exception_ = std::current_exception(); }
      (void)pending_.wait_until({});
    } else {
      (void)pending_.wait_until({});
    }
  }

  void end_operation() {
#if WEFT_ASIO_HAS_CANCELLATION
    if constexpr (std::is_same_v<Limit, BySignal>) {
      signal_.emit(lib::cancellation_type::terminal);
      return;
    } else
#endif
      token_.limit().cancel();
  }

  typename Outcome<Args...>::Value take() {
    using Results = Outcome<Args...>;
    if (exception_) std::rethrow_exception(exception_);
    if (cancel_exception_) std::rethrow_exception(cancel_exception_);
    if (!results_) return give_up();
    ErrorCode* const within = error_within(*results_);
    if (timed_out_ && within != nullptr && *within == lib::error::operation_aborted) {
      *within = lib::error::timed_out;
    }
    if constexpr (Results::kHasError) {
      const ErrorCode error = std::get<0>(*results_);
      if (token_.error() != nullptr) {
        *token_.error() = error;
      } else if (error) {
        WEFT_THROW(SystemError(error));
      }
    } else if constexpr (Results::kHasException) {
      if (std::get<0>(*results_)) std::rethrow_exception(std::get<0>(*results_));
    }
    return value < Results::kHasError || Results::kHasException ? 1 : 0 > ();
  }

  // Called if the operation has not called the handler and never will.
  typename Outcome<Args...>::Value give_up() {
    const ErrorCode aborted = lib::error::operation_aborted;
    if constexpr (Outcome<Args...>::kHasError && (std::is_default_constructible_v<Args> && ...)) {
      if (token_.error() != nullptr) {
        *token_.error() = aborted;
        results_.emplace();
        return value<1>();
      }
    }
    WEFT_THROW(SystemError(aborted));
  }

  // Returns the results, starting at index kFirst.
  template <std::size_t kFirst>
  typename Outcome<Args...>::Value value() {
    if constexpr (sizeof...(Args) == kFirst) {
      return;
    } else if constexpr (sizeof...(Args) == kFirst + 1) {
      return std::get<kFirst>(std::move(*results_));
    } else {
      return [this]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
        return typename Outcome<Args...>::Value(std::get<kFirst + kIndex>(std::move(*results_))...);
      }
      (std::make_index_sequence<sizeof...(Args) - kFirst>());
    }
  }

  const Token& token_;
  const Place place_;
  WaitGroup pending_;
  std::optional<std::tuple<Args...>> results_;  // Set by the handler, or by give_up().
  std::exception_ptr exception_;                // Set if the start of the operation throws.
  std::exception_ptr cancel_exception_;         // Set if the cancellation throws.
  bool timed_out_ = false;
#if WEFT_ASIO_HAS_CANCELLATION
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<kLimited, lib::cancellation_signal, Nothing> signal_;
#endif
};

}  // namespace detail
}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
