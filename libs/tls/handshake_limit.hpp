// How many handshakes of a server's context go on at once.
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

// A newcomer never waits: beyond the limit it ends the oldest handshake, which is most likely to
// have been abandoned by its client, or has waited longest for a processor.
class HandshakeLimit {
 public:
  explicit HandshakeLimit(std::size_t most) noexcept : most_(most) {}

  // Returns the number of a handshake, which `stop` ends. std::bad_alloc.
  [[nodiscard]] std::uint64_t enter(const std::stop_source& stop) {
    std::stop_source oldest(std::nostopstate);
    const std::uint64_t number = add(stop, oldest);
    oldest.request_stop();  // Without the lock: it wakes a fiber.
    return number;
  }
  // The handshake has ended.
  void leave(std::uint64_t number) noexcept {
    const detail::Guard guard(mutex_);
    running_.erase(number);
  }
  // Whether a newcomer has taken the place of this one, which has not left.
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

// One handshake within the limit.
class HandshakeTurn {
 public:
  // `caller` must live as long.
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
  // The caller's stop request ends it, too.
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
