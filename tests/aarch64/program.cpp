// What the emulator runs with the whole core compiled for aarch64: fibers on two workers, a channel
// between them, a pool, a wait for the clock. tools/single_header makes the header that it
// includes.
#include <weft/weft.hpp>

int main() {
  const int sum = weft::run(weft::RuntimeOptions{.workers = 2}, [] {
    weft::Channel<int> squares(4);
    weft::go([&] {
      for (int i = 1; i <= 1000; ++i) (void)squares.send(i);
      squares.close();
    });
    int total = 0;
    while (const auto one = squares.receive()) total += *one;
    weft::FiberPool pool({.capacity = 10});
    auto task = pool.async([] {
      weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
      return 42;
    });
    return total + task.get() + weft::spawn([] { return 8; }).join();
  });
  return sum == 500'550 ? 0 : 1;
}
