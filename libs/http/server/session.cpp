#include "libs/http/server/session.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/context_node.hpp>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/http/error.hpp>
#include <weft/this_fiber.hpp>

#include "libs/http/server/exchange.hpp"
#include "libs/http/server/output.hpp"
#include "libs/http/server/server_connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/head_lines.hpp"
#include "libs/http/wire/head_parser.hpp"
#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/input.hpp"

namespace weft::http {

namespace {

// Lets a connection's fiber wait for a handler in a pool, or give up before the handler begins.
struct SlotWait {
  // Returns true for one caller only: the task that begins the handler, or the fiber that gives up.
  // Relaxed: the event, not this flag, makes the task's writes visible to the fiber.
  [[nodiscard]] bool claim() noexcept { return !is_claimed.exchange(true, detail::relaxed); }

  Event done;  // Set when the task has ended or has been dropped.
  detail::Atomic<bool> is_claimed{false};
};

// The destructor notifies the waiting fiber. It runs after the task has ended or has been dropped.
class TellOnEnd {
 public:
  explicit TellOnEnd(SlotWait& wait) noexcept : wait_(&wait) {}
  TellOnEnd(TellOnEnd&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
  TellOnEnd& operator=(TellOnEnd&&) = delete;
  ~TellOnEnd() {
    if (wait_ != nullptr) wait_->done.set();
  }

 private:
  SlotWait* wait_;
};

// A session keeps its buffers on the stack of its fiber. An idle connection has no fiber and thus
// no buffers.
class Session {
 public:
  explicit Session(ServerConnection& connection) noexcept
      : connection_(connection),
        transport_(connection.transport()),
        server_(connection.server()),
        output_(transport_, server_.limits()) {}
  ~Session() {
    if (in_progress_) transport_.progress().clear();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  SessionEnd serve() {
    for (;;) {
      switch (read_head()) {
        case Found::nothing:
          return SessionEnd::idle;
        case Found::end:
          return SessionEnd::over;
        case Found::refused:
          transport_.linger();
          return SessionEnd::over;
        case Found::request:
          break;
      }
      if (!answer()) return upgraded_ ? SessionEnd::upgraded : SessionEnd::over;
      connection_.note_activity(ended_);
      served_ = true;
    }
  }

 private:
  enum class Found : std::uint8_t { nothing, end, refused, request };

  Found read_head();
  Found read_first_bytes();
  [[nodiscard]] Found nothing_asked() const noexcept;
  Found take_head(std::string_view text);
  Found refuse(std::error_code why);
  bool answer();
  void run_handler(Exchange& exchange);
  void call_handler(Exchange& exchange) noexcept;
  void begin_to_talk(Exchange& exchange) noexcept;
  void measure(const Exchange& exchange) noexcept;
  [[nodiscard]] int status_of_answer(const Exchange& exchange) const noexcept {
    return output_.error() || exchange.answer().is_broken_off() ? 0 : exchange.answer().status();
  }
  void report_access(Exchange& exchange, std::error_code why) noexcept;

  [[nodiscard]] net::Result<std::size_t> receive(std::span<char> room, Deadline deadline) {
    return transport_.read(std::as_writable_bytes(room), deadline);
  }

  ServerConnection& connection_;
  Transport& transport_;
  ServerCore& server_;
  bool served_ = false;
  bool upgraded_ = false;
  bool in_progress_ = false;
  std::int64_t began_ = 0;  // The time at which the end of the head arrived.
  std::int64_t ended_ = 0;  // The time at which the server finished sending the response.
  Input input_;
  Output output_;
  Head head_;
};

// Reads without waiting. If no bytes have arrived, the fiber ends, and the connection waits for
// bytes without a stack.
Session::Found Session::read_first_bytes() {
  // A read would find no bytes. Later bytes will cause an edge, which wakes the connection.
  if (served_ && !transport_.may_have_bytes()) return nothing_asked();
  const auto [count, error] = receive(input_.make_room(4096), Deadline::past());
  if (!error) {
    input_.filled(count);
    return Found::request;
  }
  return error == weft::Errc::timed_out ? nothing_asked() : Found::end;
}

Session::Found Session::nothing_asked() const noexcept {
  // A connection that has just served a request has not been idle for long, so only a stop ends it.
  const bool must_end = served_ ? server_.stopping() : server_.must_end(connection_);
  return must_end ? Found::end : Found::nothing;
}

Session::Found Session::read_head() {
  const Limits& limits = server_.limits();
  if (input_.rest().empty()) {
    const Found found = read_first_bytes();
    if (found != Found::request) return found;
  }
  in_progress_ = true;
  began_ = Deadline::now_nanoseconds();
  transport_.progress().begin(began_, input_.rest().size());
  head_.clear();
  HeadLines lines;
  Deadline deadline = Deadline::never();
  for (;;) {
    const std::string_view text = input_.rest();
    const HeadLines::Verdict verdict = lines.look_at(text);
    // The 64 extra bytes are more than the method and the version need.
    const bool in_target = lines.first_line_size() == 0;
    const std::size_t line_size = in_target ? text.size() : lines.first_line_size();
    if (line_size > limits.target_bytes + 64) return refuse(Errc::target_too_large);
    switch (verdict) {
      case HeadLines::Verdict::refused:
        return refuse(Errc::malformed_line);
      case HeadLines::Verdict::complete:
        if (lines.size() > limits.head_bytes) return refuse(Errc::head_too_large);
        return take_head(text.substr(lines.first_line(), lines.size() - lines.first_line()));
      case HeadLines::Verdict::incomplete:
        break;
    }
    if (text.size() >= limits.head_bytes) {
      return refuse(in_target ? Errc::target_too_large : Errc::head_too_large);
    }
    const auto room = input_.make_room(limits.head_bytes);
    auto received = receive(room, Deadline::past());
    // Some clients send an extra CRLF after a body. The server ignores it.
    if (received.error && input_.rest() == "\r\n") {
      input_.consume(2);
      return received.error == weft::Errc::timed_out ? nothing_asked() : Found::end;
    }
    if (received.error == weft::Errc::timed_out) {
      if (deadline.is_never()) deadline = Deadline::after(limits.head);
      received = receive(room, deadline);
    }
    if (received.error == weft::Errc::timed_out) return refuse(received.error);
    if (received.error == weft::Errc::end_of_stream) return refuse(Errc::truncated_head);
    if (received.error) return Found::end;
    input_.filled(received.value);
    began_ = Deadline::now_nanoseconds();
  }
}

Session::Found Session::take_head(std::string_view text) {
  const Limits& limits = server_.limits();
  Fault fault = parse_request_head(text, limits.headers, head_);
  if (!fault && head_.target.size() > limits.target_bytes) fault = Errc::target_too_large;
  if (!fault && head_.framing == Framing::length && head_.content_length > limits.body_bytes) {
    fault = Errc::body_too_large;
  }
  if (fault) return refuse(*fault);
  input_.consume(static_cast<std::size_t>(text.data() + text.size() - input_.rest().data()));
  return Found::request;
}

// head_ contains the parts of the head that were parsed. The caller must close the connection,
// because the beginning of the next request is unknown.
Session::Found Session::refuse(std::error_code why) {
  server_.meter().count_malformed();
  Exchange exchange(connection_, input_, output_, head_);
  exchange.answer().close_after();
  exchange.answer().send_error(status_of(why));
  measure(exchange);
  if (server_.options().on_access) report_access(exchange, why);
  return output_.error() ? Found::end : Found::refused;
}

// Answers a request. Returns true if the connection stays open.
bool Session::answer() {
  connection_.count_request();
  server_.meter().count_request();
  Exchange exchange(connection_, input_, output_, head_);
  transport_.progress().show(head_);
  output_.allowance() = {server_.limits().write, server_.limits().least_rate};
  run_handler(exchange);
  const bool stays = exchange.finish();
  measure(exchange);
  transport_.progress().clear();
  in_progress_ = false;
  if (server_.options().on_access) report_access(exchange, exchange.body().error());
  if (stays || exchange.answer().talk()) exchange.body().give_back();
  if (exchange.answer().talk()) {
    begin_to_talk(exchange);
  } else if (exchange.answer().must_reset()) {
    transport_.reset();
  } else if (!stays && !output_.error() && !exchange.was_the_last()) {
    transport_.linger();
  }
  return stays;
}

void Session::run_handler(Exchange& exchange) {
  FiberPool* const pool = server_.pool();
  if (pool == nullptr) {
    call_handler(exchange);
    return;
  }
  SlotWait wait;
  const Deadline limit = exchange.limit();  // The handler may change it.
  const std::error_code refused = pool->try_submit([&, told = TellOnEnd(wait)] {
    if (limit.passed() || !wait.claim()) return;
    const std::uint64_t waiting = connection_.caller();
    connection_.set_caller(this_fiber::id());
    call_handler(exchange);
    connection_.set_caller(waiting);
  });
  if (!refused) {
    (void)wait.done.wait_until(limit);
    if (!wait.claim()) return wait.done.wait();  // The handler has begun.
  }
  server_.meter().count_refused();
  exchange.answer().send_error(
      503, "Retry-After: " + std::to_string(server_.options().retry_after.count()) + "\r\n");
  if (refused) return;
  // Sends the response before waiting for the task. The queued task refers to local variables, so
  // this function must not return before the task has ended or has been dropped.
  (void)output_.flush();
  wait.done.wait();
}

void Session::call_handler(Exchange& exchange) noexcept {
  Request request(exchange);
  Response response(exchange);
  const detail::ContextNode of_request(&Exchange::ambient, &exchange);
  try {
    server_.handler()(request, response);
  } catch (...) {
    server_.report(std::current_exception());
    if (exchange.answer().started()) exchange.answer().break_off();
    exchange.answer().send_error(500);
  }
}

void Session::begin_to_talk(Exchange& exchange) noexcept {
  try {
    connection_.upgrade(std::move(exchange.answer().talk()), input_.rest());
    upgraded_ = true;
  } catch (...) {
    server_.report(std::current_exception());
  }
}

// Counts a response that has ended.
void Session::measure(const Exchange& exchange) noexcept {
  ended_ = Deadline::now_nanoseconds();
  server_.meter().record(transport_.progress().route(), status_of_answer(exchange),
                         ended_ - began_);
}

// Calls on_access. If the request was not read completely, `why` contains the reason.
void Session::report_access(Exchange& exchange, std::error_code why) noexcept {
  const Request request(exchange);
  try {
    server_.options().on_access({.request = request,
                                 .status = status_of_answer(exchange),
                                 .bytes = exchange.answer().bytes_sent(),
                                 .duration = std::chrono::nanoseconds(ended_ - began_),
                                 .error = output_.error() ? output_.error() : why});
  } catch (...) {
    server_.report(std::current_exception());
  }
}

}  // namespace

SessionEnd serve_session(ServerConnection& connection) {
  Session session(connection);
  return session.serve();
}

}  // namespace weft::http
