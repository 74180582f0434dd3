#include "http/connection.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <exception>

#include "http/server_core.hpp"
#include "http/session.hpp"
#include "io/poller.hpp"

namespace weft::http {

Connection::Connection(net::TcpStream stream, ServerCore& server) noexcept
    : IoWatch{&Connection::start_fiber},
      stream_(std::move(stream)),
      server_(server),
      active_at_(coarse_now()) {}

bool Connection::wait_for_bytes() noexcept {
  try {
    fiber_ = detail::spawn_parked(detail::Task([this] { serve(); }), detail::WaitReason::readable);
  } catch (const std::exception&) {
    return false;
  }
  const io::IoUse use(stream_.socket().handle());
  if (use) {
    use->read().add_watch(*this);
  } else {
    detail::wake(fiber_);  // Closed meanwhile: the fiber will see.
  }
  return true;
}

detail::Waker Connection::start_fiber(IoWatch& watch) noexcept {
  return static_cast<Connection&>(watch).fiber_;
}

// In a new fiber.
void Connection::serve() noexcept {
  {
    const io::IoUse use(stream_.socket().handle());
    // The watch has taken the edge, so whether there are bytes has to be asked.
    if (use) use->read().set_drained(false);
  }
  const SessionEnd end = serve_session(*this);
  if (end == SessionEnd::idle && wait_for_bytes()) return;
  server_.end_connection(*this);
}

net::Result<std::size_t> Connection::read(std::span<char> room, Deadline deadline) {
  return stream_.read_some(std::as_writable_bytes(room), deadline);
}

std::error_code Connection::write(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  // Most answers fit at once, and then no clock is needed.
  const auto [done, error] = stream_.write_some(bytes, Deadline::past());
  if (!error && done == bytes.size()) return {};
  if (error && error != weft::Errc::timed_out) return error;
  const Deadline deadline = Deadline::after(server_.limits().write);
  return stream_.write_all(bytes.subspan(done), deadline).error;
}

void Connection::linger() {
  constexpr std::size_t kMost = 256 * 1024;
  if (stream_.shutdown(net::Shutdown::write)) return;
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  std::array<char, 4096> room;
  for (std::size_t dropped = 0; dropped < kMost;) {
    const auto [count, error] = read(room, deadline);
    if (error) return;
    dropped += count;
  }
}

[[gnu::noinline]] std::int64_t Connection::coarse_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace weft::http
