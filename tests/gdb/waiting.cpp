// The program that tests/gdb/run looks at: fibers that wait, each for something different, when the
// process stops. With an argument it dies by a signal then; otherwise it waits forever.
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

// Keeps its worker. Not inlined, either.
[[gnu::noinline]] void blocks_for_ever() {
  while (true) ::pause();
}

// Named, so that they are found in a backtrace, and not inlined.
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
    // Without a name, so that the type of its callable is shown: a lambda nested in main's lambda.
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
    // Until all wait: the receiver, the one that wants the mutex, the nested one, and the child.
    do {
      weft::this_fiber::sleep_for(std::chrono::milliseconds(100));
    } while (!blocks || weft::metrics::read().runtimes.at(0).parked_count < 4);
    if (dies) std::abort();
    weft::this_fiber::sleep_for(std::chrono::hours(1));
    nested.join();
    parent.join();
  });
}
