// Owns a socket.
#pragma once

#include <utility>

namespace weft::io {
class IoHandle;
}

namespace weft::net {

// Owns a socket that is registered with its runtime's poller; streams and listeners contain a
// Socket. A Socket is move-only, is closed by the destructor, and must not outlive its runtime.
// Context: fibers and plain threads; no call parks or throws.
class Socket {
 public:
  Socket() noexcept = default;
  // Takes over a handle from the poller, or the socket of `other`, which is then empty.
  explicit Socket(io::IoHandle* handle) noexcept : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  // Closes this socket and takes the socket of `other`. No caller may be using either socket.
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  // Closes the socket. No caller may be using the socket.
  ~Socket() { reset(); }

  // Ends all waits with Errc::closed. The descriptor is closed when the last call on it has ended.
  // close() may be called repeatedly, and while other callers use the socket.
  void close() noexcept;
  // Returns false for an empty or closed socket; may be stale.
  [[nodiscard]] bool is_open_hint() const noexcept;
  // Returns the descriptor, or -1 if empty. It must stay open and non-blocking until close().
  [[nodiscard]] int descriptor() const noexcept;
  // Empties the socket and returns the open descriptor, which the caller then owns; -1 if the
  // socket was empty or closed. No call may be using the socket.
  [[nodiscard]] int release() noexcept;
  // Returns the poller's handle, for select cases; null if the socket is empty.
  [[nodiscard]] io::IoHandle* handle() const noexcept { return handle_; }

 private:
  void reset() noexcept;

  io::IoHandle* handle_ = nullptr;
};

}  // namespace weft::net
