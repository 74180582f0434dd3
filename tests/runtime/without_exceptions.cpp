// Tests a program that is built without exceptions: all of it compiles, links and runs.
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  const int sum = weft::run({.workers = 2}, [] {
    weft::Channel<int> channel(4);
    weft::TaskGroup group;
    for (int i = 1; i <= 3; ++i) group.spawn([&, i] { (void)channel.send(i); });
    group.join();
    channel.close();
    int total = 0;
    while (const auto value = channel.receive()) total += *value;
    weft::FiberPool pool({.capacity = 2});
    total += pool.async([] { return weft::spawn([] { return 4; }).join(); }).get();
    return total;
  });
  if (sum != 10) std::fprintf(stderr, "the sum is %d instead of 10\n", sum);
  return sum == 10 ? 0 : 1;
}
