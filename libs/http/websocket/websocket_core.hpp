// The state of one WebSocket, for either end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/guard.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/http/response.hpp>
#include <weft/http/websocket.hpp>
#include <weft/mutex.hpp>

#include "libs/http/websocket/message_reader.hpp"

namespace weft::http {

// Unlocks a mutex that is already locked when the object is made.
class WEFT_SCOPED_LOCK HeldLock {
 public:
  explicit HeldLock(Mutex& mutex) noexcept WEFT_REQUIRES(mutex) : mutex_(mutex) {}
  ~HeldLock() WEFT_RELEASES() { mutex_.unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  Mutex& mutex_;
};

// The pong for the newest ping; older pings need no answer. Any thread may call the functions.
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

// The connection, with one mutex for each direction. A reader may also lock for writing, to answer
// a ping or a close; a writer never reads.
class WebSocket::Core {
 public:
  // `deflate_bits` is 0 without compression.
  Core(Role role, Upgraded link, const WebSocketOptions& options, std::string protocol,
       int deflate_bits)
      : role_(role),
        link_(link),
        options_(options),
        protocol_(std::move(protocol)),
        deflate_bits_(deflate_bits),
        reader_(role, options.message_bytes, options.fragments, deflate_bits != 0),
        silence_{.ends = Deadline::after(options.ping)} {}

  net::Result<Message> receive(const Until& until);
  std::error_code send(Opcode opcode, std::string_view payload, const Until& until);
  std::error_code close(std::uint16_t code, std::string_view reason, const Until& until);

  [[nodiscard]] std::uint16_t close_code() const noexcept { return peer_close_.code; }
  [[nodiscard]] std::string_view close_reason() const noexcept { return peer_close_.reason; }
  [[nodiscard]] std::string_view protocol() const noexcept { return protocol_; }

 private:
  // Tracks when to send the peer a ping, and when to give up a peer that has not answered.
  struct Silence {
    Deadline ends;
    bool awaits_pong = false;
  };
  struct PeerClose {
    std::uint16_t code = 0;
    std::string reason;
  };

  net::Result<Message> read_message(const Until& until) WEFT_REQUIRES(reading_);
  // Reads bytes, and sends pings while none arrive.
  std::error_code read_more(const Until& until) WEFT_REQUIRES(reading_);
  std::error_code read_once(const Until& until) WEFT_REQUIRES(reading_);
  // Handles an event other than a message. An error ends the connection.
  std::error_code handle(MessageReader::Event event) WEFT_REQUIRES(reading_);
  std::error_code refuse(std::uint16_t code) WEFT_REQUIRES(reading_);
  // Reads until the peer's close frame.
  std::error_code await_close(const Until& until) WEFT_REQUIRES(reading_);
  // Reads until the peer has closed, so that a reset does not discard what was sent.
  void drain() WEFT_REQUIRES(reading_);
  std::error_code end(std::error_code why) WEFT_REQUIRES(reading_);
  std::error_code send_alone(Opcode opcode, std::string_view payload, const Until& limit);
  // Sends the pending pong, unless a writer will send it.
  void send_pong();
  std::error_code write_frame(Opcode opcode, std::string_view payload, const Until& until)
      WEFT_REQUIRES(writing_);

  const Role role_;
  Upgraded link_;
  const WebSocketOptions& options_;
  const std::string protocol_;
  const int deflate_bits_;

  Mutex reading_;
  MessageReader reader_ WEFT_GUARDED_BY(reading_);
  std::array<char, 4096> room_;  // Only the owner of reading_ uses room_, and input_, a part of it.
  std::string_view input_ WEFT_GUARDED_BY(reading_);
  Silence silence_ WEFT_GUARDED_BY(reading_);
  std::error_code ended_ WEFT_GUARDED_BY(reading_);  // The result of all further reads.
  PeerClose peer_close_;

  Mutex writing_;
  bool has_closed_ WEFT_GUARDED_BY(writing_) = false;  // The last frame was a close.
  OwedPong pong_;
};

}  // namespace weft::http
