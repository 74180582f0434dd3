// tests/gdb/run examines this program, in which each fiber waits for something different. With an
// argument, a signal then ends the process; otherwise it waits forever.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <weft/channel.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/metrics.hpp>
#include <weft/mutex.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

namespace {

// Keeps its worker busy forever. The function is not inlined.
[[gnu::noinline]] void blocks_for_ever() {
  while (true) ::pause();
}

// The functions are named and not inlined, so that a backtrace shows them.
[[gnu::noinline]] int receives_at_depth(weft::Channel<int>& channel, int depth) {
  int value = 0;
  if (depth > 0) {
    value = receives_at_depth(channel, depth - 1);
  } else if (const auto received = channel.receive()) {
    value = *received;
  }
  asm volatile("" : "+r"(value));
  return value + depth;
}

}  // namespace

int main(int argc, char**) {
  const bool dies = argc > 1;
  weft::run({.workers = 2}, [dies] {
    weft::Channel<int> channel;
    weft::Event event;
    weft::Mutex mutex;
    mutex.lock();
    weft::go({.name = "receiver"}, [&] { (void)receives_at_depth(channel, 3); });
    weft::go({.name = "wants mutex"}, [&] { mutex.lock(); });
    // This fiber has no name, so the list shows the type of its callable: a lambda nested in a
    // lambda.
    auto nested = weft::spawn([&] { event.wait(); });
    auto parent = weft::spawn({.name = "parent"}, [&] {
      auto child = weft::spawn([&] { event.wait(); });
      child.join();
    });
    std::atomic<bool> blocks{false};
    weft::go({.name = "blocks"}, [&] {
      blocks = true;
      blocks_for_ever();
    });
    // Polls until all fibers wait: the receiver, the fiber at the mutex, the nested fiber, and the
    // child.
    do {
      weft::this_fiber::sleep_for(std::chrono::milliseconds(100));
    } while (!blocks || weft::metrics::read().runtimes.at(0).parked_count < 4);
    if (dies) std::abort();
    weft::this_fiber::sleep_for(std::chrono::hours(1));
    nested.join();
    parent.join();
  });
}
