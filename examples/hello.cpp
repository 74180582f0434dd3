// The first program to read: a runtime, fibers, a channel and a join handle.
//
//   hello
//   hello --fibers 1000
#include <fmt/core.h>

#include <string>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "command_line.hpp"

namespace {

// Runs in a fiber: weft functions that wait park this fiber, and its worker continues with another
// fiber.
int greet(unsigned fibers) {
  weft::Channel<std::string> greetings;
  for (unsigned i = 0; i < fibers; ++i) {
    weft::go([&greetings, i] { (void)greetings.send(fmt::format("hello from fiber {}", i)); });
  }

  // A fiber with a result. The channel is unbuffered: each send above waits for a receive here.
  auto printer = weft::spawn([&greetings, fibers] {
    std::size_t letters = 0;
    for (unsigned i = 0; i < fibers; ++i) {
      const std::string greeting = greetings.receive().value();
      letters += greeting.size();
      fmt::print("{}\n", greeting);
    }
    return letters;
  });
  fmt::print("{} letters\n", printer.join());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned fibers = 3;
  examples::CommandLine line("hello",
                             "Some fibers send greetings over a channel, and one prints them.");
  line.add("--fibers", fibers, 1, 1'000'000, "fibers that send a greeting");
  return line.run(argc, argv, [&] { return weft::run([&] { return greet(fibers); }); });
}
