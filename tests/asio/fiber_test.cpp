// Tests the executor that runs Asio's handlers as fibers, and the token for waits of fibers.
#include <signal.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/asio/executor.hpp>
#include <weft/asio/use_fiber.hpp>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/this_fiber.hpp>
// This file is built with Boost.Asio or with standalone Asio.
#if defined(WEFT_ASIO_STANDALONE)
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#else
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#endif
// Older versions of Asio have as_tuple in the namespace `experimental`.
#if __has_include(<boost/asio/as_tuple.hpp>) && !defined(WEFT_ASIO_STANDALONE)
#include <boost/asio/as_tuple.hpp>
#elif __has_include(<asio/as_tuple.hpp>) && defined(WEFT_ASIO_STANDALONE)
#include <asio/as_tuple.hpp>
#elif WEFT_ASIO_HAS_CANCELLATION && defined(WEFT_ASIO_STANDALONE)
#include <asio/experimental/as_tuple.hpp>
namespace asio {
using experimental::as_tuple;
}
#elif WEFT_ASIO_HAS_CANCELLATION
#include <boost/asio/experimental/as_tuple.hpp>
namespace boost::asio {
using experimental::as_tuple;
}
#endif

#include "tests/support/fiber_test.hpp"

namespace weft::test {

namespace {

using namespace std::chrono_literals;
using asio::ErrorCode;
using asio::SystemError;
using asio::use_fiber;
namespace lib = asio::lib;
using lib::steady_timer;
namespace error = lib::error;

// Starts a user-defined asynchronous operation on `executor`, which passes its handler to `begin`.
template <class Signature, class Executor, class Begin>
struct Operation {
  using executor_type = Executor;
  Executor executor;
  Begin begin;
  [[nodiscard]] Executor get_executor() const noexcept { return executor; }
  template <class Handler>
  void operator()(Handler handler) {
    begin(std::move(handler));
  }
};
template <class Signature, class Executor, class Begin, class Token>
auto start(const Executor& executor, Begin begin, const Token& token) {
  return lib::async_initiate<const Token, Signature>(
      Operation<Signature, Executor, Begin>{executor, begin}, token);
}

// Waits for `timer`; sets `begun` when the operation has begun.
void wait_for(steady_timer& timer, Event& begun, ErrorCode& error) {
  const auto begin = [&](auto handler) {
    timer.async_wait(std::move(handler));
    begun.set();
  };
  start<void(ErrorCode)>(timer.get_executor(), begin, use_fiber[error]);
}

bool on_fiber() { return weft::this_fiber::id() != 0; }

}  // namespace

TEST_SUITE_BEGIN("asio/fiber");

FIBER_TEST_CASE("fibers wait with use_fiber for timers, signals and name resolution") {
  asio::Context context;
  steady_timer timer(context.get_executor(), 1ms);
  timer.async_wait(use_fiber);
  CHECK(timer.expiry() <= steady_timer::clock_type::now());

  lib::signal_set signals(context.get_executor(), SIGUSR2);
  raise(SIGUSR2);  // Pending until a wait asks for it.
  CHECK(signals.async_wait(use_fiber) == SIGUSR2);

  lib::ip::tcp::resolver resolver(context.get_executor());
  const auto found = resolver.async_resolve("127.0.0.1", "80", use_fiber);
  CHECK(found.begin()->endpoint().port() == 80);

  auto by_default = use_fiber.as_default_on(steady_timer(context.get_executor(), 1ms));
  by_default.async_wait();
}

FIBER_TEST_CASE(
    "handlers run as fibers and may park, and the asio context waits for the handlers") {
  asio::Context context;
  Channel<int> values;
  steady_timer timer(context.get_executor(), 1ms);
  timer.async_wait([&](ErrorCode) {
    CHECK(on_fiber());
    CHECK(values.receive() == 1);
  });
  lib::post(context.get_executor(), [&] {
    CHECK(on_fiber());
    CHECK(values.receive() == 1);
  });
  CHECK_FALSE(context.wait_until(Deadline::past()));
  (void)values.send(1);
  (void)values.send(1);
  context.wait();
}

FIBER_TEST_CASE("use_fiber converts errors, exceptions and tuples as Asio's own tokens do") {
  asio::Context context;
  const auto executor = context.get_executor();
  const auto refused = error::connection_refused;
  start<void(ErrorCode)>(
      executor, [](auto handler) { handler(ErrorCode()); }, use_fiber);
  CHECK_THROWS_AS(start<void(ErrorCode)>(
                      executor, [&](auto handler) { handler(refused); }, use_fiber),
                  SystemError);
  const auto both = [](auto handler) { handler(ErrorCode(), 1, std::string("two")); };
  CHECK(start<void(ErrorCode, int, std::string)>(executor, both, use_fiber) ==
        std::tuple(1, std::string("two")));
  ErrorCode seen;
  const auto partly = [&](auto handler) { handler(refused, 7); };
  CHECK(start<void(ErrorCode, int)>(executor, partly, use_fiber[seen]) == 7);
  CHECK(seen == refused);
  CHECK(start<void(int)>(
            executor, [](auto handler) { handler(3); }, use_fiber) == 3);
  const auto thrown = [](auto handler) {
    handler(std::make_exception_ptr(std::runtime_error("a")), std::unique_ptr<int>());
  };
  CHECK_THROWS_WITH(
      (start<void(std::exception_ptr, std::unique_ptr<int>)>(executor, thrown, use_fiber)), "a");
  const auto fails = [](auto) { throw std::runtime_error("not begun"); };
  CHECK_THROWS_WITH(start<void(ErrorCode)>(executor, fails, use_fiber), "not begun");
  const auto drops = [](auto) {};
  CHECK_THROWS_AS(start<void(ErrorCode)>(executor, drops, use_fiber), SystemError);
  CHECK(start<void(ErrorCode, int)>(executor, drops, use_fiber[seen]) == 0);
  CHECK(seen == error::operation_aborted);
#if WEFT_ASIO_HAS_CANCELLATION
  const auto tuple = lib::as_tuple(use_fiber);
  CHECK(std::get<0>(start<void(ErrorCode, int)>(executor, partly, tuple)) == refused);
#endif
}

FIBER_TEST_CASE(
    "a deadline or a stop request cancels an operation, and the fiber waits until the operation "
    "has ended") {
  asio::Context context;
  steady_timer timer(context.get_executor(), 24h);
  const auto cancel = [&] { timer.cancel(); };
  ErrorCode seen;
  timer.async_wait(use_fiber(1ms, cancel)[seen]);
  CHECK(seen == error::timed_out);

  std::stop_source source;
  Channel<int> begun;
  auto stopper = spawn([&] {
    (void)begun.receive();
    source.request_stop();
  });
  (void)begun.send(1);
  timer.async_wait(use_fiber(source.get_token(), cancel)[seen]);
  CHECK(seen == error::operation_aborted);
  stopper.join();
#if WEFT_ASIO_HAS_CANCELLATION
  timer.async_wait(use_fiber(1ms)[seen]);
  CHECK(seen == error::timed_out);
  timer.async_wait(use_fiber(source.get_token())[seen]);
  CHECK(seen == error::operation_aborted);
  CHECK(std::get<0>(timer.async_wait(lib::as_tuple(use_fiber(1ms)))) == error::timed_out);
  // redirect_error stores the error, so the token does not throw it.
  timer.async_wait(lib::redirect_error(use_fiber(1ms), seen));
  CHECK(seen == error::operation_aborted);
#endif
  // An operation that has already completed keeps its result.
  const auto late = [](auto handler) { handler(ErrorCode(), 5); };
  CHECK(start<void(ErrorCode, int)>(context.get_executor(), late,
                                    use_fiber(source.get_token(), [] {})) == 5);
}

FIBER_TEST_CASE(
    "a cancel function's exception reaches the waiter only when the operation has ended") {
  asio::Context context;
  steady_timer timer(context.get_executor(), 24h);
  bool ended = false;
  // The operation completes only after an attempt to cancel it has failed.
  const auto begin = [&](auto handler) {
    timer.async_wait([&, handler = std::move(handler)](ErrorCode) mutable {
      ended = true;
      handler(ErrorCode());
    });
  };
  const auto fails = [&] {
    timer.cancel();
    throw std::runtime_error("not cancelled");
  };
  ErrorCode seen;
  CHECK_THROWS_WITH(
      start<void(ErrorCode)>(context.get_executor(), begin, use_fiber(1ms, fails)[seen]),
      "not cancelled");
  CHECK(ended);
  lib::ip::tcp::socket closed(context.get_executor());
  bool has_thrown = false;
  // Each round takes longer, because on a slow machine the operation may end before the caller
  // notices the deadline.
  for (auto time = 10ms; !has_thrown; time *= 2) {
    timer.expires_after(time);
    try {
      timer.async_wait(use_fiber(1ms, [&] { closed.cancel(); }));
    } catch (const SystemError&) {
      has_thrown = true;
    }
    CHECK(timer.expiry() <= steady_timer::clock_type::now());
  }
}

FIBER_TEST_CASE(
    "a wait whose deadline has passed reports the deadline rather than a stop request") {
  asio::Context context;
  steady_timer timer(context.get_executor(), 24h);
  std::stop_source source;
  source.request_stop();
  ErrorCode seen;
  const Until both(Deadline::past(), source.get_token());
  timer.async_wait(use_fiber(both, [&] { timer.cancel(); })[seen]);
  CHECK(seen == error::timed_out);
}

FIBER_TEST_CASE("an operation begins and ends on the executor of the operation's I/O object") {
  lib::io_context foreign;
  auto work = lib::make_work_guard(foreign);
  std::thread loop([&] { foreign.run(); });
  const auto id = loop.get_id();
  std::thread::id began;
  const auto begin = [&](auto handler) {
    began = std::this_thread::get_id();
    handler();
  };
  start<void()>(foreign.get_executor(), begin, use_fiber);
  CHECK(began == id);
  start<void()>(lib::make_strand(foreign), begin, use_fiber(24h, [] {}));
  CHECK(began == id);
  steady_timer timer(foreign, 1ms);
  timer.async_wait(use_fiber);
  ErrorCode seen;
  timer.expires_after(24h);
  timer.async_wait(use_fiber(1ms, [&] {
    CHECK(std::this_thread::get_id() == id);
    timer.cancel();
  })[seen]);
  CHECK(seen == error::timed_out);
  work.reset();
  loop.join();
}

FIBER_TEST_CASE("many fibers use one I/O object through a strand without concurrent access") {
  asio::Context context;
  steady_timer timer(lib::make_strand(context.get_executor()), 24h);
  const auto strand = timer.get_executor();
  WaitGroup waiting;
  int begun = 0;  // Guarded by the strand.
  for (int i = 0; i < 50; ++i) {
    waiting.go([&, i] {
      ErrorCode seen;
      if (i % 2 == 0) {
        timer.async_wait(use_fiber(Deadline::past(), [&] { timer.cancel(); })[seen]);
        CHECK(seen);
      } else {
        start<void()>(
            strand,
            [&](auto handler) {
              ++begun;
              handler();
            },
            use_fiber);
      }
    });
  }
  // Each cancel ends all current waits.
  waiting.wait();
  CHECK(begun == 25);
}

THREAD_TEST_CASE("a plain thread waits for an operation with the completion token use_fiber") {
  asio::Context context;
  steady_timer timer(context.get_executor(), 1ms);
  timer.async_wait(use_fiber);
  timer.expires_after(24h);
  ErrorCode seen;
  timer.async_wait(use_fiber(1ms, [&] { timer.cancel(); })[seen]);
  CHECK(seen == error::timed_out);
}

THREAD_TEST_CASE("a deadline or a stop request ends a plain thread's wait for an asio context") {
  asio::Context context;
  Channel<int> values;
  lib::post(context.get_executor(), [&] { CHECK(values.receive() == 1); });
  CHECK_FALSE(context.wait_until(Deadline::after(1ms)));
  std::stop_source source;
  go([&] { source.request_stop(); });
  CHECK_FALSE(context.wait_until(source.get_token()));
  (void)values.send(1);
  context.wait();
}

FIBER_TEST_CASE(
    "the destructor of an asio context drops pending operations without calling their handlers") {
  bool called = false;
  {
    asio::Context context;
    auto timer = std::make_shared<steady_timer>(context.get_executor(), 24h);
    timer->async_wait([&called, timer](ErrorCode) { called = true; });
  }
  CHECK_FALSE(called);
}

FIBER_TEST_CASE(
    "an asio context can be destroyed while a running handler begins another operation") {
  struct Session : std::enable_shared_from_this<Session> {
    explicit Session(const asio::Context::executor_type& executor) : timer(executor) {}
    void arm() {
      timer.expires_after(0ms);
      timer.async_wait([self = shared_from_this()](ErrorCode) {
        steady_timer pause(self->timer.get_executor(), 24h);
        ErrorCode told;
        wait_for(pause, self->waits, told);
        CHECK(told == error::operation_aborted);
        self->arm();
      });
    }
    steady_timer timer;
    Event waits;
  };
  std::weak_ptr<Session> session;
  {
    asio::Context context;
    const auto made = std::make_shared<Session>(context.get_executor());
    session = made;
    made->arm();
    made->waits.wait();
  }
  CHECK(session.expired());
}

FIBER_TEST_CASE(
    "each wait that a handler began reports operation_aborted when the asio context is destroyed") {
  std::vector<ErrorCode> told;
  {
    asio::Context context;
    Event waits;
    lib::post(context.get_executor(), [&] {
      steady_timer timer(context.get_executor(), 24h);
      wait_for(timer, waits, told.emplace_back());
      timer.async_wait(use_fiber(24h, [&] { timer.cancel(); })[told.emplace_back()]);
    });
    waits.wait();
  }
  CHECK(told == std::vector<ErrorCode>(2, error::operation_aborted));
}

TEST_SUITE_END();

}  // namespace weft::test
