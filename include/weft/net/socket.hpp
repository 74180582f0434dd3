// The ownership of one open socket.
#pragma once

#include <utility>

namespace weft::io {
class IoHandle;
}

namespace weft::net {

// Owns a socket that is registered with its runtime's poller; what streams and listeners have
// inside. Move-only; closes in the destructor. It must not outlive its runtime. From fibers and
// plain threads; calls neither park, throw nor synchronize.
class Socket {
 public:
  Socket() noexcept = default;
  // A socket made of what the poller handed out; or of another one, which is empty then.
  explicit Socket(io::IoHandle* handle) noexcept : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  // Closes what it had; `other` is empty then. No caller may be using this one.
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  // Closes it. No caller may be using it.
  ~Socket() { reset(); }

  // Ends all waits on the socket with Errc::closed. The descriptor is closed as soon as no call
  // uses it any more. May be called while others wait, and more than once.
  void close() noexcept;
  // False for an empty or closed socket; may be stale when it returns.
  [[nodiscard]] bool is_open_hint() const noexcept;
  // For setsockopt and the like: it must stay open and non-blocking. -1 for an empty socket.
  [[nodiscard]] int descriptor() const noexcept;
  // The descriptor, which stays open and is the caller's from now on; the socket is empty then. -1
  // for one that is empty or closed. No caller may be using the socket.
  [[nodiscard]] int release() noexcept;
  // The handle by which the poller knows it, for select()'s cases; null for an empty socket.
  [[nodiscard]] io::IoHandle* handle() const noexcept { return handle_; }

 private:
  void reset() noexcept;

  io::IoHandle* handle_ = nullptr;
};

}  // namespace weft::net
