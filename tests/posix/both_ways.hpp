// The same body on a plain thread and on a fiber in a Scope, for comparing what it returns.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>
#include <weft/go.hpp>
#include <weft/posix.hpp>

#include "tests/support/fiber_test.hpp"

namespace weft::test {

// False where a Scope is refused: then the test has nothing to compare, and says so.
inline bool has_hooks() {
  static const bool has = [] {
    try {
      const posix::Scope scope;
      return true;
    } catch (const std::system_error& error) {
      std::string why = error.what();
      MESSAGE("skipped: " << why);
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

// `body` notes results and errnos in a Log. True if both logs are alike; otherwise both are shown.
template <class Body>
void check_both_ways(Body body) {
  Log threads;
  Log fibers;
  std::thread([&] { body(threads); }).join();
  weft::spawn([&] {
    const posix::Scope scope;
    body(fibers);
  }).join();
  CHECK(text_of(threads) == text_of(fibers));
}

// Notes a result, and errno if it is -1.
inline void note(Log& log, long result) {
  const int error = errno;
  log.push_back(result);
  if (result < 0) log.push_back(-1000 - error);
}

}  // namespace weft::test
