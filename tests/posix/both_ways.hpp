// Runs the same body on a plain thread and on a fiber in a Scope, and compares the results.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>
#include <weft/detail/one_shot.hpp>
#include <weft/go.hpp>
#include <weft/posix.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

// Returns false if a Scope is refused; the test then reports that it compares nothing.
inline bool has_hooks() {
  static const bool has = [] {
    try {
      const posix::Scope scope;
      return true;
    } catch (const std::system_error& error) {
      skip(error.what());
      return false;
    }
  }();
  return has;
}

using Log = std::vector<long>;

inline std::string text_of(const Log& log) {
  std::string text;
  for (const long one : log) text += std::to_string(one) + ' ';
  return text;
}

// Calls `body` twice: once with requests to io_uring, if the system has it, and once without.
template <class Body>
void with_and_without_requests(Body body) {
  body();
  detail::allow_one_shots(false);
  body();
  detail::allow_one_shots(true);
}

// `body` notes results and errnos in a Log. Returns true if all logs are equal; otherwise prints
// them.
template <class Body>
void check_both_ways(Body body) {
  Log threads;
  std::thread([&] { body(threads); }).join();
  with_and_without_requests([&] {
    Log fibers;
    weft::spawn([&] {
      const posix::Scope scope;
      body(fibers);
    }).join();
    CHECK(text_of(threads) == text_of(fibers));
  });
}

// Notes a result, and errno if it is -1.
inline void note(Log& log, long result) {
  const int error = errno;
  log.push_back(result);
  if (result < 0) log.push_back(-1000 - error);
}

// Holds two sockets that are connected to each other.
struct Pair {
  std::array<int, 2> ends{};
  explicit Pair(int type = SOCK_STREAM) { ::socketpair(AF_UNIX, type, 0, ends.data()); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    for (const int end : ends) ::close(end);
  }
  [[nodiscard]] int here() const { return ends[0]; }
  [[nodiscard]] int there() const { return ends[1]; }
};

// Sets SO_RCVTIMEO or SO_SNDTIMEO.
inline void set_limit(int fd, int option, long microseconds) {
  const timeval limit{0, microseconds};
  CHECK(::setsockopt(fd, SOL_SOCKET, option, &limit, sizeof limit) == 0);
}

// Returns the time on `clock` after a duration of at least -1000 ms.
inline timespec moment(clockid_t clock, long milliseconds) {
  timespec now{};
  ::clock_gettime(clock, &now);
  const long nanoseconds = 1'000'000'000 + now.tv_nsec + milliseconds * 1'000'000;
  return {now.tv_sec - 1 + nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
}

// Returns how often the report has counted `call` with this reason.
inline std::uint64_t times_blocked(const std::string& call, const std::string& reason) {
  std::uint64_t count = 0;
  for (const auto& blocked : weft::posix::report()) {
    if (blocked.call == call && blocked.reason == reason) count += blocked.count;
  }
  return count;
}

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace weft::test
