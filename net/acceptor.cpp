#include "net/acceptor.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <weft/this_fiber.hpp>

namespace weft::net {

namespace {

// Accepts one connection, as accept_once() does. The listener may have been closed by now.
Result<Socket> accept_from_open(const AnyListener& listener, const Until& until) {
  const io::IoUse use(listener.socket().handle());
  if (!use) return {.error = Errc::closed};
  return accept_once(*use, until);
}

}  // namespace

void Acceptor::start(std::span<const AnyListener> listeners) {
  // Waits until all fibers accept: shutdowns wait for each of them.
  struct Starting {
    WaitGroup& accepting;
    ~Starting() { accepting.done(); }
  };
  errors_.resize(listeners.size());
  accepting_.add();
  const Starting starting{accepting_};
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    accepting_.go(
        [this, &listener = listeners[i], &error = errors_[i]] { error = accept_from(listener); });
  }
}

std::error_code Acceptor::error() const noexcept {
  const auto first = std::ranges::find_if(errors_, [](std::error_code error) { return !!error; });
  return first != errors_.end() ? *first : std::error_code();
}

// Returns the next connection. If places are limited, it has taken a place for the connection.
Result<Socket> Acceptor::next_connection(const AnyListener& listener, const Until& until) {
  const bool waits = at_limit_ == AtLimit::wait;
  if (waits && !take_place(until)) return {.error = Errc::cancelled};
  for (;;) {
    Result<Socket> result = accept_from_open(listener, until);
    if (result.error) {
      if (waits) give_place();
      return result;
    }
    if (waits || take_place(until)) return result;
    turn_away(std::move(result.value));
  }
}

std::error_code Acceptor::accept_from(const AnyListener& listener) noexcept {
  const std::stop_token token = stop_.get_token();
  Pauses pauses;
  ReserveDescriptor reserve;
  std::error_code failure;
  while (!is_stopping()) {
    auto [socket, error] = next_connection(listener, token);
    if (!error) {
      pauses.reset();
      // A refused client may still use the reserve. Until the reserve is back, each free descriptor
      // serves to refuse one more client. Otherwise that client would be served while other clients
      // wait for a refusal.
      if (reserve.take()) {
        begin(listener.to_stream(std::move(socket)));
      } else {
        give_place();
        turn_away(std::move(socket));
      }
    } else if (passes_by_itself(error)) {
      wait_out(listener, error, pauses, reserve);
    } else {
      if (error != Errc::cancelled && error != Errc::closed) failure = error;
      stop();
    }
  }
  begin_last(listener);
  return failure;
}

// A client that connected before the end is served when a place becomes free, until the remaining
// clients are refused.
void Acceptor::begin_last(const AnyListener& listener) noexcept {
  const std::stop_token late = late_.get_token();
  std::vector<Socket> last;
  while (!late.stop_requested()) {
    auto [socket, error] = accept_from_open(listener, Deadline::past());
    if (error) break;
    try {
      last.push_back(std::move(socket));
    } catch (const std::bad_alloc&) {
      turn_away(std::move(socket));
    }
  }
  listener.close();
  for (Socket& each : last) {
    if (!late.stop_requested() && take_place(late)) {
      begin(listener.to_stream(std::move(each)));
    } else {
      turn_away(std::move(each));
    }
  }
}

void Acceptor::wait_out(const AnyListener& listener, std::error_code error, Pauses& pauses,
                        ReserveDescriptor& reserve) {
  count_pause();
  const bool lacks_descriptors =
      error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system;
  if (pauses.count() == kRefusalsToReport) report_refusals(error);
  // A burst passes within the first pauses. A client that would wait longer is refused.
  if (lacks_descriptors && pauses.count() >= 3) refuse_waiting(listener, reserve);
  (void)this_fiber::sleep_for(pauses.next(), stop_.get_token());
}

void Acceptor::refuse_waiting(const AnyListener& listener, ReserveDescriptor& reserve) {
  constexpr int kMost = 64;
  for (int i = 0; i < kMost; ++i) {
    (void)reserve.take();
    if (!reserve.give()) return;
    auto [socket, error] = accept_from_open(listener, Deadline::past());
    if (error) break;
    turn_away(std::move(socket));
  }
  (void)reserve.take();
}

}  // namespace weft::net
