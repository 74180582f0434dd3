// Where OpenSSL reads and writes.
#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

namespace weft::tls {

// Encrypted bytes on their way: OpenSSL takes and puts them here and never waits; whoever called it
// moves them to and from the socket. So no call of OpenSSL switches, nor makes a system call that
// could raise SIGPIPE, and what it keeps for each thread, its queue of errors, is never in use when
// a fiber moves.
struct Wire {
  std::vector<char> in;
  std::size_t in_begin = 0;
  std::string out;
  bool in_ended = false;

  [[nodiscard]] std::size_t unread() const noexcept { return in.size() - in_begin; }
};

// A BIO on `wire`, which must outlive it. Null: out of memory.
[[nodiscard]] BIO* make_bio(Wire& wire) noexcept;

// The calling thread's first error, which is forgotten then, as are all others.
[[nodiscard]] std::error_code take_error() noexcept;

}  // namespace weft::tls
