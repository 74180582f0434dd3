// One WebSocket, at either end.
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

// Unlocks a mutex that its maker has locked.
class WEFT_SCOPED_LOCK HeldLock {
 public:
  explicit HeldLock(Mutex& mutex) noexcept WEFT_REQUIRES(mutex) : mutex_(mutex) {}
  ~HeldLock() WEFT_RELEASES() { mutex_.unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  Mutex& mutex_;
};

// The answer to the newest ping; older ones need none. Any thread may call each function.
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

// The connection, with a mutex for each direction. A reader may lock for writing, too, for the
// answers to pings and a close; a writer never reads.
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
  // When it is time to ask the peer by a ping, or to give up one that has not answered.
  struct Silence {
    Deadline ends;
    bool awaits_pong = false;
  };
  struct PeerClose {
    std::uint16_t code = 0;
    std::string reason;
  };

  net::Result<Message> read_message(const Until& until) WEFT_REQUIRES(reading_);
  // Reads bytes, and sends pings as long as none come.
  std::error_code read_more(const Until& until) WEFT_REQUIRES(reading_);
  std::error_code read_once(const Until& until) WEFT_REQUIRES(reading_);
  // Answers what is no message. An error ends the connection.
  std::error_code handle(MessageReader::Event event) WEFT_REQUIRES(reading_);
  std::error_code refuse(std::uint16_t code) WEFT_REQUIRES(reading_);
  // Reads the peer's part of the close handshake.
  std::error_code await_close(const Until& until) WEFT_REQUIRES(reading_);
  // Reads until the peer has closed, so that no reset overtakes what was sent.
  void drain() WEFT_REQUIRES(reading_);
  std::error_code end(std::error_code why) WEFT_REQUIRES(reading_);
  std::error_code send_alone(Opcode opcode, std::string_view payload, const Until& limit);
  // Sends the pong that is owed, if no writer does.
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
  std::array<char, 4096> room_;  // For reading_'s owner, as is input_, a part of it.
  std::string_view input_ WEFT_GUARDED_BY(reading_);
  Silence silence_ WEFT_GUARDED_BY(reading_);
  std::error_code ended_ WEFT_GUARDED_BY(reading_);  // What all further reads return.
  PeerClose peer_close_;

  Mutex writing_;
  bool has_closed_ WEFT_GUARDED_BY(writing_) = false;  // A close frame was the last one.
  OwedPong pong_;
};

}  // namespace weft::http
