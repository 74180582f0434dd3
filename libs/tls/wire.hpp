// Where OpenSSL reads and writes.
#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

#include "libs/tls/openssl.hpp"

namespace weft::tls {

// Encrypted bytes on their way: OpenSSL takes and puts them here and never waits; its caller moves
// them to and from the socket. So no call of OpenSSL switches, nor makes a system call that could
// raise SIGPIPE, and what it keeps for each thread, its queue of errors, is never in use when a
// fiber moves.
struct Wire {
  std::vector<char> in;
  std::size_t in_begin = 0;
  std::string out;
  bool in_ended = false;
  // There was no memory for something to be sent. Bytes behind it would be of no use.
  bool out_lost = false;

  [[nodiscard]] std::size_t unread() const noexcept { return in.size() - in_begin; }
};

// A BIO on `wire`, which must outlive it. Null, or std::bad_alloc: out of memory.
[[nodiscard]] BIO* make_bio(Wire& wire);

// The calling thread's first error, or std::errc::not_enough_memory if that is among them; it
// clears them all.
[[nodiscard]] std::error_code take_error() noexcept;
// The same after a call for a connection: if its peer's certificate was refused, the reason for it.
[[nodiscard]] std::error_code take_error(const SSL& ssl) noexcept;

}  // namespace weft::tls
