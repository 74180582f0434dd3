// Owns a socket.
#pragma once

#include <utility>

namespace weft::io {
class IoHandle;
}

namespace weft::net {

// Owns a socket that is registered with its runtime's poller; streams and listeners contain one. It
// is move-only and closes in the destructor; it must not outlive its runtime.
// Context: fibers and plain threads; no call parks or throws.
class Socket {
 public:
  Socket() noexcept = default;
  // Takes a handle of the poller, or the socket of `other`, which is then empty.
  explicit Socket(io::IoHandle* handle) noexcept : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  // Closes its own socket and takes that of `other`. No caller may be using either.
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  // Closes it. No caller may be using it.
  ~Socket() { reset(); }

  // Ends all waits with Errc::closed. The descriptor closes when its last call has ended. It may be
  // called during calls of other callers, and repeatedly.
  void close() noexcept;
  // Returns false for an empty or closed socket; may be stale.
  [[nodiscard]] bool is_open_hint() const noexcept;
  // Returns the descriptor, for setsockopt, or -1. It must stay open and non-blocking.
  [[nodiscard]] int descriptor() const noexcept;
  // Gives the caller the open descriptor, or -1, and is then empty. No caller may be using it.
  [[nodiscard]] int release() noexcept;
  // Returns the poller's handle, for select cases; null for an empty socket.
  [[nodiscard]] io::IoHandle* handle() const noexcept { return handle_; }

 private:
  void reset() noexcept;

  io::IoHandle* handle_ = nullptr;
};

}  // namespace weft::net
