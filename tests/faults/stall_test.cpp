// Tests faults while the monitor reports a stalled worker.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>
#include <weft/runtime.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/stall");

namespace {

using namespace std::chrono_literals;
using weft::test::Call;

// Computes in the only worker's fiber until the monitor reports the stall.
void tell_of_stall() {
  std::atomic<std::size_t> told{0};
  weft::Runtime runtime({.workers = 1, .stall = 1ms, .on_stall = [&told](const auto& report) {
                           told.store(report.text.size());
                         }});
  runtime.run([&] {
    while (told.load() == 0) std::this_thread::yield();
  });
}
TEST_CASE("a stall is reported even if a system call or an allocation fails during the stall") {
  weft::test::sweep(&tell_of_stall, {{Call::allocate, ENOMEM},
                                     {Call::start_thread, EAGAIN},
                                     {Call::map, ENOMEM},
                                     {Call::futex_wait, EINTR}});
}

}  // namespace

TEST_SUITE_END();
