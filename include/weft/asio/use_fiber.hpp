// A completion token: an asynchronous operation of Asio's parks the calling fiber until it is done.
//
//   const std::size_t count = socket.async_read_some(buffer, use_fiber);
//   socket.async_connect(endpoint, use_fiber[error]);              // Sets `error`, throws nothing.
//   boost::asio::async_read(socket, buffer, use_fiber(100ms));     // Until; from Boost 1.77 on.
//
// From fibers and from plain threads, but not from a handler that keeps the operation's executor
// (one in a strand, or on the only thread of an io_context): what it waits for could never come.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <weft/asio/detail/fiber_operation.hpp>
#include <weft/asio/library.hpp>
#include <weft/until.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

// The token. The arguments of the operation's handler become the call's result, as Asio's own
// tokens have it. An error_code in front is thrown as a system_error, an exception_ptr is rethrown.
// Of what remains, nothing becomes void, one value itself, several a std::tuple. An operation that
// is given up without a result (its context ends, say) counts as operation_aborted.
//
// The operation begins on its object's executor, and its handlers run there. The state of the wait
// is on the stack of the caller, which does not return before the operation is over. Synchronizes:
// what the operation did comes before the return.
//
// Limit is NoLimit, or what use_fiber(until) makes.
template <class Limit = detail::NoLimit, class Where = detail::Anywhere>
class UseFiber {
 public:
  // As `use_fiber`: no limit, on the executor that the operation names, errors are thrown.
  UseFiber() noexcept = default;
  // Of the calls below.
  UseFiber(Limit limit, Where where, ErrorCode* error) noexcept
      : limit_(std::move(limit)), where_(std::move(where)), error_(error) {}

#if WEFT_ASIO_HAS_CANCELLATION
  // When `until` ends the wait, the operation is cancelled (cancellation_type::terminal) and its
  // end awaited. Its result is returned unchanged, except that operation_aborted becomes timed_out
  // if the deadline has passed, which is checked before the stop request. An operation that
  // supports no cancellation goes on to its own end.
  [[nodiscard]] auto operator()(const Until& until) const {
    return UseFiber<detail::BySignal, Where>({until}, where_, error_);
  }
#endif
  // The same, where cancel() does it, on the operation's executor: `[&] { timer.cancel(); }`. For
  // every Boost, and for libraries that know no cancellation slots. If cancel() throws (Asio's do
  // on a socket that is closed), the operation goes on to its own end; the exception is thrown
  // then, in place of the result.
  template <std::invocable Cancel>
  [[nodiscard]] auto operator()(const Until& until, Cancel cancel) const {
    return UseFiber<detail::ByCall<Cancel>, Where>({until, std::move(cancel)}, where_, error_);
  }
  // Errors are put there, or "no error", and nothing is thrown for them.
  [[nodiscard]] UseFiber operator[](ErrorCode& error) const {
    return UseFiber(limit_, where_, &error);
  }
  // For operations that do not say what their executor is; such a one does not compile otherwise.
  template <class Executor>
  [[nodiscard]] auto on(Executor executor) const {
    return UseFiber<Limit, Executor>(limit_, std::move(executor), error_);
  }

  // For async_result: what may end the wait.
  [[nodiscard]] const Limit& limit() const noexcept { return limit_; }
  // The same: where the operation begins.
  [[nodiscard]] const Where& where() const noexcept { return where_; }
  // The same: where errors go; null: they are thrown.
  [[nodiscard]] ErrorCode* error() const noexcept { return error_; }

  // An executor whose objects use the token where none is given, as Asio's tokens have it:
  //   auto timer = use_fiber.as_default_on(boost::asio::steady_timer(executor));
  template <class Inner>
  struct executor_with_default : Inner {  // NOLINT: Asio's name.
    using default_completion_token_type = UseFiber;

    // From an executor of the kind, or what converts to it, as Asio's objects are made.
    executor_with_default(const Inner& inner) noexcept : Inner(inner) {}  // NOLINT: converts.
    template <class Other>
    requires(!std::is_same_v<Other, executor_with_default> && std::is_convertible_v<Other, Inner>)
        executor_with_default(const Other& other)
    noexcept : Inner(other) {}  // NOLINT: converts.
  };
  template <class T>
  using as_default_on_t =  // NOLINT: Asio's name.
      typename T::template rebind_executor<executor_with_default<typename T::executor_type>>::other;
  // The object with that executor.
  template <class T>
  static as_default_on_t<std::decay_t<T>> as_default_on(T&& object) {
    return as_default_on_t<std::decay_t<T>>(std::forward<T>(object));
  }

 private:
  [[no_unique_address]] Limit limit_;
  [[no_unique_address]] Where where_;
  ErrorCode* error_ = nullptr;
};

inline const UseFiber<> use_fiber;  // NOLINT: as Asio's tokens are called.

}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio

// How Asio finds out what the token means.
template <class Limit, class Where, class R, class... Args>
class weft::asio::lib::async_result<weft::asio::UseFiber<Limit, Where>, R(Args...)> {
 public:
  using return_type = typename weft::asio::detail::Outcome<std::decay_t<Args>...>::Value;

  template <class Initiation, class Token, class... InitiationArgs>
  static return_type initiate(Initiation&& initiation, Token&& token, InitiationArgs&&... args) {
    const auto executor = weft::asio::detail::executor_of(token.where(), initiation, args...);
    using Operation =
        weft::asio::detail::FiberOperation<std::decay_t<Token>, std::decay_t<decltype(executor)>,
                                           std::decay_t<Args>...>;
    Operation operation(token, executor);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"  // Beast hands 0 on as a size.
    return operation.run([&](auto&& handler) {
      std::forward<Initiation>(initiation)(std::move(handler),
                                           std::forward<InitiationArgs>(args)...);
    });
#pragma GCC diagnostic pop
  }
};
