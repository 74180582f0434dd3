// Tests the page of the heap. tests/observe/check_heap runs the last case with jemalloc.
#include "observe/heap_page.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <weft/live_page.hpp>
#include <weft/runtime.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using weft::live::Answer;
using weft::observe::fold_heap_profile;

constexpr std::size_t kBytes = std::size_t{64} << 20;

[[gnu::noinline]] std::unique_ptr<char[]> allocate_much() {
  auto bytes = std::make_unique<char[]>(kBytes);
  asm volatile("" : : "r"(bytes.get()) : "memory");
  return bytes;
}

// Returns the largest number at the end of a line.
std::size_t largest_stack(const std::string& folded) {
  std::size_t largest = 0;
  for (std::size_t end = folded.find('\n'); end != std::string::npos;
       end = folded.find('\n', end + 1)) {
    const std::size_t blank = folded.rfind(' ', end);
    largest = std::max<std::size_t>(largest, std::stoull(folded.substr(blank + 1)));
  }
  return largest;
}

TEST_SUITE_BEGIN("observe/heap_page");

TEST_CASE(
    "a jemalloc heap profile is converted to folded stacks, and each sample is scaled to the bytes "
    "it represents") {
  const std::string folded = fold_heap_profile(
      "heap_v2/4096\n"
      "  t*: 3: 5000 [0: 0]\n"
      "  t0: 3: 5000 [0: 0]\n"
      "@ 0x10 0x20 0x30\n"
      "  t*: 1: 1048576 [0: 0]\n"
      "  t0: 1: 1048576 [0: 0]\n"
      "@ 0x10 0x40\n"
      "  t*: 2: 64 [7: 224]\n"
      "@ 0x50\n"
      "  t*: 0: 0 [9: 288]\n"
      "\n"
      "MAPPED_LIBRARIES:\n"
      "00400000-00401000 r-xp 00000000 00:00 1 @ /bin/program\n");
  // A call precedes its return address. 64 sampled bytes in objects of 32 bytes stand for 64 / (1 -
  // exp(-32 / 4096)) bytes.
  CHECK(folded == "0x2f;0x1f;0xf 1048576\n0x3f;0xf 8224\n");
}

TEST_CASE("a tcmalloc heap profile is converted to folded stacks") {
  CHECK(fold_heap_profile("heap profile:      3:   1100 [     9:   3000] @ heapprofile\n"
                          "     2:   1000 [     5:   2500] @ 0x10 0x20\n"
                          "     1:    100 [     4:    500] @ 0x30\n"
                          "\n"
                          "MAPPED_LIBRARIES:\n") == "0x1f;0xf 1000\n0x2f 100\n");
}

TEST_CASE(
    "the heap page shows a fiber's memory, or how to enable heap profiles when they are disabled") {
  weft::test::TestGuard guard("the page of the heap");
  const bool is_expected = std::getenv("WEFT_EXPECTS_HEAP") != nullptr;
  Answer answer;
  Answer raw;
  weft::run([&] {
    const auto bytes = allocate_much();
    answer = weft::live::answer("/heap");
    raw = weft::live::answer("/heap?format=pprof");
    CHECK(weft::live::answer("/heap?format=other").status == (is_expected ? 400 : 503));
  });
  if (!is_expected) {
    CHECK(answer.status == 503);
    CHECK(answer.body.find("MALLOC_CONF=prof:true") != std::string::npos);
    return;
  }
  CHECK(answer.status == 200);
  CHECK(largest_stack(answer.body) >= kBytes);
  CHECK(raw.body.starts_with("heap_v2/"));
}

TEST_SUITE_END();

}  // namespace
