// Limits how many handshakes of a server's context run concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stop_token>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/detail/thread_mutex.hpp>
#include <weft/tls/context.hpp>
#include <weft/until.hpp>

namespace weft::tls {

// A new handshake never waits: at the limit it ends the oldest handshake. Most likely its client
// has abandoned it, or it has waited longest for a processor.
class HandshakeLimit {
 public:
  explicit HandshakeLimit(std::size_t most) noexcept : most_(most) {}

  // Registers a handshake that `stop` can end, and returns its number; throws std::bad_alloc.
  [[nodiscard]] std::uint64_t enter(const std::stop_source& stop) {
    std::stop_source oldest(std::nostopstate);
    const std::uint64_t number = add(stop, oldest);
    oldest.request_stop();  // This runs without the lock, because it wakes a fiber.
    return number;
  }
  // Removes a handshake that has ended.
  void leave(std::uint64_t number) noexcept {
    const detail::Guard guard(mutex_);
    running_.erase(number);
  }
  // Returns whether a newer handshake has replaced this handshake, which has not called leave()
  // yet.
  [[nodiscard]] bool was_dropped(std::uint64_t number) const noexcept {
    const detail::Guard guard(mutex_);
    return !running_.contains(number);
  }
  [[nodiscard]] HandshakeStats stats() const noexcept {
    const detail::Guard guard(mutex_);
    return {.running = running_.size(), .dropped = dropped_};
  }

 private:
  std::uint64_t add(const std::stop_source& stop, std::stop_source& oldest) {
    const detail::Guard guard(mutex_);
    running_.emplace(++last_, stop);
    if (running_.size() > most_) {
      oldest = std::move(running_.begin()->second);
      running_.erase(running_.begin());
      ++dropped_;
    }
    return last_;
  }

  const std::size_t most_;
  mutable detail::ThreadMutex mutex_;
  std::map<std::uint64_t, std::stop_source> running_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t last_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ WEFT_GUARDED_BY(mutex_) = 0;
};

// Counts one handshake against the limit.
class HandshakeTurn {
 public:
  // `caller` must outlive the object.
  HandshakeTurn(HandshakeLimit& limit, const Until& caller)
      : limit_(limit),
        token_(stop_.get_token()),
        until_(caller.deadline(), token_),
        forward_(caller.token() != nullptr ? *caller.token() : std::stop_token(), Forward{&stop_}),
        number_(limit.enter(stop_)) {}
  ~HandshakeTurn() { limit_.leave(number_); }
  HandshakeTurn(const HandshakeTurn&) = delete;
  HandshakeTurn& operator=(const HandshakeTurn&) = delete;

  [[nodiscard]] const Until& until() const noexcept { return until_; }
  [[nodiscard]] bool was_dropped() const noexcept { return limit_.was_dropped(number_); }

 private:
  // Forwards the caller's stop request to the handshake.
  struct Forward {
    std::stop_source* stop;
    void operator()() const noexcept { stop->request_stop(); }
  };

  HandshakeLimit& limit_;
  std::stop_source stop_;
  const std::stop_token token_;
  const Until until_;
  const std::stop_callback<Forward> forward_;
  const std::uint64_t number_;
};

}  // namespace weft::tls
