// Implements the state of a WebSocket, at either end of the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/event.hpp>
#include <weft/http/response.hpp>
#include <weft/http/websocket.hpp>
#include <weft/mutex.hpp>

#include "libs/http/websocket/deflate.hpp"
#include "libs/http/websocket/message_reader.hpp"

namespace weft::http {

// Unlocks a mutex in its destructor; the caller of the constructor must have locked the mutex.
class WEFT_SCOPED_LOCK HeldLock {
 public:
  explicit HeldLock(Mutex& mutex) noexcept WEFT_REQUIRES(mutex) : mutex_(mutex) {}
  ~HeldLock() WEFT_RELEASES() { mutex_.unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  Mutex& mutex_;
};

// Holds the pong for the newest ping; older pings need no answer. Thread-safe.
class OwedPong {
 public:
  void owe(std::string_view payload) {
    const detail::SpinGuard guard(lock_);
    payload_ = payload;
  }
  [[nodiscard]] bool is_owed() const noexcept {
    const detail::SpinGuard guard(lock_);
    return payload_.has_value();
  }
  [[nodiscard]] std::optional<std::string> take() noexcept {
    const detail::SpinGuard guard(lock_);
    return std::exchange(payload_, std::nullopt);
  }

 private:
  mutable detail::SpinLock lock_;
  std::optional<std::string> payload_ WEFT_GUARDED_BY(lock_);
};

// Holds the connection below a WebSocket. Any fiber or thread may call close() at any time, even
// after detach().
class SharedLink {
 public:
  explicit SharedLink(const Upgraded& upgraded) noexcept : upgraded_(upgraded) {}

  // The caller must hold reading_ to read, writing_ to write, or `lingering` for both.
  [[nodiscard]] Upgraded& operator*() noexcept { return upgraded_; }
  [[nodiscard]] Upgraded* operator->() noexcept { return &upgraded_; }
  // Closes the connection, which ends all waits in both directions.
  void close() noexcept {
    mutex_.lock();
    const HeldLock lock(mutex_);
    if (!is_detached_) upgraded_.close();
  }
  // Closes the connection. Later calls to close() have no effect.
  void detach() noexcept {
    close();
    mutex_.lock();
    const HeldLock lock(mutex_);
    is_detached_ = true;
  }

  Mutex lingering;  // Held by the caller that is running linger().

 private:
  Upgraded upgraded_;
  Mutex mutex_;
  bool is_detached_ WEFT_GUARDED_BY(mutex_) = false;
};

// Returns whether compression keeps or drops its context between messages.
[[nodiscard]] inline DeflateContext context_of(const WebSocketOptions& options) noexcept {
  return options.compress_context ? DeflateContext::kept : DeflateContext::dropped;
}

// Holds the connection, with one mutex for each direction. A reader may also lock writing_, to
// answer a ping or a close. A writer never locks reading_.
// Invariant: while State::is_parked is set, no caller reads, because the server waits for bytes
// instead. No assertion checks this, because a Core cannot see whether the server waits.
class WebSocket::Core {
 public:
  // Without DeflateTerms, the connection does not compress messages.
  Core(Role role, Upgraded link, const WebSocketOptions& options, std::string protocol,
       const std::optional<DeflateTerms>& terms)
      : role_(role),
        link_(link),
        options_(options),
        protocol_(std::move(protocol)),
        reader_(role, options.message_bytes, options.fragments,
                terms ? std::optional(terms->receive) : std::nullopt),
        silence_{.ends = Deadline::after(options.ping)} {
    if (terms) deflater_.emplace(terms->send_bits, terms->send);
  }

  net::Result<Message> receive(const Until& until);
  std::error_code send(Opcode opcode, std::string_view payload, const Until& until);
  std::error_code close(std::uint16_t code, std::string_view reason, const Until& until);

  // Returns the next received message. The server calls it if the WebSocket has no fiber between
  // messages. If it returns neither a message nor an error, call it again when bytes have arrived.
  net::Result<std::optional<Message>> take();
  // Sends a ping to a silent peer, and ends the connection if the peer has been silent or slow for
  // too long. Has no effect unless the connection is waiting for bytes. Returns the time when
  // look_after() must be called again.
  [[nodiscard]] Deadline look_after();
  // Ends all calls to this object's functions. No call uses the link after detach() returns.
  void detach() noexcept;

  [[nodiscard]] std::uint16_t close_code() const noexcept { return peer_close_.code; }
  [[nodiscard]] std::string_view close_reason() const noexcept { return peer_close_.reason; }
  [[nodiscard]] std::string_view protocol() const noexcept { return protocol_; }

 private:
  // Specifies when to send the peer a ping, and when to close the connection if no pong arrives.
  struct Silence {
    Deadline ends;
    bool awaits_pong = false;
    Deadline message_ends = Deadline::never();  // The deadline of a message that has begun.
  };
  // The received bytes that the reader has not consumed yet.
  struct Bytes {
    std::unique_ptr<char[]> room;  // Null between messages if the connection has no fiber.
    std::string_view rest;         // A part of `room`.
    bool is_drained = false;       // True if the last read found no bytes.
  };
  struct State {
    std::error_code ended = {};  // If set, all further reads fail with this error.
    bool is_parked = false;      // True while the connection is waiting for bytes without a fiber.
    bool lingers = false;        // True if the link stays open after the last frame; see linger().
  };
  struct PeerClose {
    std::uint16_t code = 0;
    std::string reason;
  };

  net::Result<Message> read_message(const Until& until) WEFT_REQUIRES(reading_);
  // Reads bytes, and sends pings while no bytes arrive.
  std::error_code read_more(const Until& until) WEFT_REQUIRES(reading_);
  std::error_code read_once(const Until& until) WEFT_REQUIRES(reading_);
  // Handles an event other than a message. An error ends the connection.
  std::error_code handle(MessageReader::Event event) WEFT_REQUIRES(reading_);
  std::error_code refuse(std::uint16_t code, Errc why) WEFT_REQUIRES(reading_);
  // Sets the deadline of the message being received. Removes it if no message is being received.
  void note_begin(MessageReader::Event event) WEFT_REQUIRES(reading_);
  // Closes the WebSocket because the server is stopping.
  std::error_code go_away() WEFT_REQUIRES(reading_);
  // Reads and drops messages until the peer's close frame arrives.
  std::error_code await_close(const Until& until) WEFT_REQUIRES(reading_);
  net::Result<Message> receive_next(const Until& until);
  net::Result<std::optional<Message>> take_next();
  // Reads for at most options_.close, or until the peer ends the connection, and then closes the
  // link. Does nothing if another call is already doing this. Closing the link earlier could cause
  // a reset, which would discard sent bytes. Does not hold reading_ during this time, so close()
  // need not wait for reading_.
  void linger();
  std::error_code end(std::error_code why) WEFT_REQUIRES(reading_);
  std::error_code send_alone(Opcode opcode, std::string_view payload, const Until& limit);
  // Sends the owed pong, unless a writer will send it.
  void send_pong();
  std::error_code write_frame(Opcode opcode, std::string_view payload, const Until& until)
      WEFT_REQUIRES(writing_);

  const Role role_;
  SharedLink link_;
  const WebSocketOptions& options_;
  const std::string protocol_;

  Mutex reading_;
  MessageReader reader_ WEFT_GUARDED_BY(reading_);
  Bytes input_ WEFT_GUARDED_BY(reading_);
  Silence silence_ WEFT_GUARDED_BY(reading_);
  State state_ WEFT_GUARDED_BY(reading_);
  PeerClose peer_close_;
  Event over_;  // Set last, when State::ended and peer_close_ have their final values.

  Mutex writing_;
  std::optional<MessageDeflater> deflater_ WEFT_GUARDED_BY(writing_);
  bool has_closed_ WEFT_GUARDED_BY(writing_) = false;  // No further frame may be sent.
  OwedPong pong_;
};

}  // namespace weft::http
