// Provides a completion token that parks the caller of an Asio operation until the operation ends.
//
//   const std::size_t count = socket.async_read_some(buffer, use_fiber);
//   socket.async_connect(endpoint, use_fiber[error]);              // Stores the error in `error`.
//   boost::asio::async_read(socket, buffer, use_fiber(100ms));     // Until; from Boost 1.77 on.
//
// A handler that occupies the operation's executor (in a strand, or on the only thread of an
// io_context) must not use the token, because its wait could never end.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <weft/asio/detail/fiber_operation.hpp>
#include <weft/asio/library.hpp>
#include <weft/until.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {

// Implements the token. The arguments of the operation's handler become the call's result, as with
// Asio's own tokens. The call throws a leading error_code as a system_error, and rethrows a leading
// exception_ptr. Without further arguments, the result is void; with one argument, its value; with
// several, a std::tuple. If Asio never calls the handler, the error is operation_aborted.
// The operation begins on its object's executor, or on the executor that was passed to on(); its
// handlers run there. The caller's stack holds the state of the wait, so the call returns only
// after the operation has ended. Limit is NoLimit, or the type that use_fiber(until) selects.
// Context: a plain value; an operation with this token parks its caller, a fiber or a plain thread.
// Ordering: the end of the operation synchronizes with the return of the call.
template <class Limit = detail::NoLimit, class Where = detail::Anywhere>
class UseFiber {
 public:
  // Makes the token `use_fiber`: no limit, the operation's own executor, and thrown errors.
  UseFiber() noexcept = default;
  // Makes a token with the settings that the functions below can change.
  UseFiber(Limit limit, Where where, ErrorCode* error) noexcept
      : limit_(std::move(limit)), where_(std::move(where)), error_(error) {}

#if WEFT_ASIO_HAS_CANCELLATION
  // Returns a token with which `until` can end the wait. If it does, the operation is cancelled
  // (cancellation_type::terminal), and the call waits until the operation ends. The result is
  // unchanged, except that operation_aborted becomes timed_out if the deadline passed, even if a
  // stop was requested as well. An operation that cannot be cancelled continues to its end.
  [[nodiscard]] auto operator()(const Until& until) const {
    return UseFiber<detail::BySignal, Where>({until}, where_, error_);
  }
#endif
  // Works like the overload above, but calls cancel(), for example `[&] { timer.cancel(); }`, on
  // the operation's executor. This form works with every version of Boost, and with libraries that
  // have no cancellation slots. If cancel() throws (as on a closed socket), the operation continues
  // to its end; the call then throws the exception.
  template <std::invocable Cancel>
  [[nodiscard]] auto operator()(const Until& until, Cancel cancel) const {
    return UseFiber<detail::ByCall<Cancel>, Where>({until, std::move(cancel)}, where_, error_);
  }
  // Returns a token that stores a leading error_code, set or not, in `error`, and never throws it.
  [[nodiscard]] UseFiber operator[](ErrorCode& error) const {
    return UseFiber(limit_, where_, &error);
  }
  // Returns a token that begins operations on `executor`; call on() if they have no executor.
  template <class Executor>
  [[nodiscard]] auto on(Executor executor) const {
    return UseFiber<Limit, Executor>(limit_, std::move(executor), error_);
  }

  // For async_result: returns the limit.
  [[nodiscard]] const Limit& limit() const noexcept { return limit_; }
  // For async_result: returns the executor on which the operation begins, or Anywhere.
  [[nodiscard]] const Where& where() const noexcept { return where_; }
  // For async_result: returns the address of the caller's error code, or null to throw errors.
  [[nodiscard]] ErrorCode* error() const noexcept { return error_; }

  // Wraps an executor, so that its objects use the token by default, as with Asio's tokens:
  //   auto timer = use_fiber.as_default_on(boost::asio::steady_timer(executor));
  template <class Inner>
  struct executor_with_default : Inner {  // NOLINT: Asio's name.
    using default_completion_token_type = UseFiber;

    // Wraps an executor, or an object of another type that converts to Inner.
    executor_with_default(const Inner& inner) noexcept : Inner(inner) {}  // NOLINT: converts.
    template <class Other>
    requires(!std::is_same_v<Other, executor_with_default> && std::is_convertible_v<Other, Inner>)
        executor_with_default(const Other& other)
    noexcept : Inner(other) {}  // NOLINT: converts.
  };
  template <class T>
  using as_default_on_t =  // NOLINT: Asio's name.
      typename T::template rebind_executor<executor_with_default<typename T::executor_type>>::other;
  // Returns the object with its executor wrapped in an executor_with_default.
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

// Defines the token's behavior for Asio.
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
#pragma GCC diagnostic ignored "-Wsign-conversion"  // Beast converts an int to a size.
    return operation.run([&](auto&& handler) {
      std::forward<Initiation>(initiation)(std::move(handler),
                                           std::forward<InitiationArgs>(args)...);
    });
#pragma GCC diagnostic pop
  }
};
