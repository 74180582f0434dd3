// Shows the state of a connection's request to other threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/spin_lock.hpp>

#include "libs/http/server/route_index.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

// Holds the beginning of a string. It is copied while a lock is held, so it must not allocate.
template <std::size_t kMost>
class ShortText {
 public:
  void assign(std::string_view text) noexcept {
    size_ = text.substr(0, kMost).copy(text_.data(), kMost);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, kMost> text_;
  std::size_t size_ = 0;
};

// Holds a copy of a request's progress.
struct ProgressView {
  std::int64_t began = 0;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  RouteIndex route = kNoRoute;
  std::int64_t waits_since = 0;  // See Progress::set_waits_since().
  ShortText<16> method;
  ShortText<256> target;
};

// Describes a connection's request, from the request's first byte to the end of its response. Only
// the connection's fiber, or the handler's fiber while a handler runs, changes a Progress. The lock
// is therefore rarely contended. The connection's fiber calls clear() before the strings in the
// head change.
class Progress {
 public:
  // Begins a request whose first bytes arrived at time `now` on Deadline's clock.
  void begin(std::int64_t now, std::size_t received) noexcept {
    const detail::SpinGuard guard(lock_);
    began_ = now;
    route_.store(kNoRoute, detail::relaxed);
    received_.store(received, detail::relaxed);
    sent_.store(0, detail::relaxed);
  }
  // Makes a complete head visible to read().
  void show(const Head& head) noexcept {
    const detail::SpinGuard guard(lock_);
    head_ = &head;
  }
  // Sets the route that a router has found. Relaxed: a reader may see the previous route.
  void set_route(RouteIndex route) noexcept { route_.store(route, detail::relaxed); }
  [[nodiscard]] RouteIndex route() const noexcept { return route_.load(detail::relaxed); }
  // If `since` is positive, the server has been waiting for bytes from the client since that time.
  // If `since` is negative, the server has been waiting for the client to read since time -since.
  // If `since` is 0, the server is not waiting. Relaxed: the number publishes no other data.
  void set_waits_since(std::int64_t since) noexcept { waits_since_.store(since, detail::relaxed); }
  [[nodiscard]] std::int64_t waits_since() const noexcept {
    return waits_since_.load(detail::relaxed);
  }
  // Resets the state to "no request" after the end of a response.
  void clear() noexcept {
    const detail::SpinGuard guard(lock_);
    began_ = 0;
    head_ = nullptr;
  }
  // Relaxed: each number has one writer and publishes no other data.
  void count_received(std::size_t bytes) noexcept {
    received_.store(received_.load(detail::relaxed) + bytes, detail::relaxed);
  }
  void count_sent(std::uint64_t bytes) noexcept {
    sent_.store(sent_.load(detail::relaxed) + bytes, detail::relaxed);
  }

  // Returns the time at which the request's first bytes arrived, or 0 if there is no request. Any
  // thread may call began() and read().
  [[nodiscard]] std::int64_t began() const noexcept {
    const detail::SpinGuard guard(lock_);
    return began_;
  }
  [[nodiscard]] ProgressView read() const noexcept {
    ProgressView view;
    const detail::SpinGuard guard(lock_);
    view.began = began_;
    view.route = route();
    view.waits_since = waits_since();
    view.received = received_.load(detail::relaxed);
    view.sent = sent_.load(detail::relaxed);
    if (head_ == nullptr) return view;
    view.method.assign(head_->method);
    view.target.assign(head_->target);
    return view;
  }

 private:
  mutable detail::SpinLock lock_;
  std::int64_t began_ WEFT_GUARDED_BY(lock_) = 0;
  const Head* head_ WEFT_GUARDED_BY(lock_) = nullptr;
  detail::Atomic<std::int64_t> waits_since_{0};
  detail::Atomic<RouteIndex> route_{kNoRoute};
  detail::Atomic<std::uint64_t> received_{0};
  detail::Atomic<std::uint64_t> sent_{0};
};

// Records, while it exists, that the server is waiting for the client.
class ClientWait {
 public:
  enum class For : std::uint8_t { bytes, room };
  ClientWait(Progress& progress, For what) noexcept : progress_(progress) {
    const std::int64_t now = Deadline::now_nanoseconds();
    progress_.set_waits_since(what == For::bytes ? now : -now);
  }
  ~ClientWait() { progress_.set_waits_since(0); }
  ClientWait(const ClientWait&) = delete;
  ClientWait& operator=(const ClientWait&) = delete;

 private:
  Progress& progress_;
};

}  // namespace weft::http
