// Defines the buffers that OpenSSL reads and writes.
#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

#include "libs/tls/openssl.hpp"

namespace weft::tls {

// Buffers of encrypted bytes: OpenSSL reads and writes them and never waits; its caller moves the
// bytes to and from the socket. So no call to OpenSSL switches fibers or makes a system call that
// could raise SIGPIPE. OpenSSL's error queue belongs to the thread, and is never in use when a
// fiber moves.
struct Wire {
  std::vector<char> in;
  std::size_t in_begin = 0;
  std::string out;
  bool in_ended = false;
  // Some output was lost for lack of memory. Later output would be useless without it.
  bool out_lost = false;

  [[nodiscard]] std::size_t unread() const noexcept { return in.size() - in_begin; }
  // Removes the bytes that OpenSSL has read. If none remain, keeps at most kKept bytes of memory.
  void drop_read() noexcept;
};

// An idle connection keeps at most this many bytes of memory for each empty buffer.
inline constexpr std::size_t kKept = 512;

template <class Buffer>
void release_if_large(Buffer& buffer) noexcept {
  if (buffer.capacity() > kKept) Buffer().swap(buffer);
}

// Makes a BIO on `wire`, which must outlive it. Returns null or throws std::bad_alloc if there is
// no memory.
[[nodiscard]] BIO* make_bio(Wire& wire);

// Returns the calling thread's first error, or std::errc::not_enough_memory if that is among the
// errors, and clears them all. Without an error, returns std::errc::protocol_error.
[[nodiscard]] std::error_code take_error() noexcept;
// Does the same after a call for a connection: if the peer's certificate was refused, returns the
// reason.
[[nodiscard]] std::error_code take_error(const SSL& ssl) noexcept;

}  // namespace weft::tls
