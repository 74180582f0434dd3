// Tests that idle connections cost nothing: no worker wakes for them, however many workers there
// are.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>

#include "base/shake.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

namespace {

using namespace std::chrono_literals;

struct Connection {
  weft::net::TcpStream client;
  weft::net::TcpStream server;
};

std::vector<Connection> connect(int count) {
  auto listener = weft::net::TcpListener::listen(weft::net::Address::loopback_v4(0)).value;
  std::vector<Connection> connections(static_cast<std::size_t>(count));
  for (Connection& each : connections) {
    each.client = weft::net::TcpStream::connect(listener.local_address().value).value;
    each.server = listener.accept().value;
  }
  return connections;
}

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::max(1, std::atoi(text)) : otherwise;
}

// Returns how often a thread of the runtime has given up its processor in order to wait.
std::uint64_t count_waits_of_runtime() {
  std::uint64_t waits = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (name.rfind("weft-", 0) != 0) continue;
    std::ifstream status(task.path() / "status");
    const std::string label = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(label, 0) == 0) waits += std::stoull(line.substr(label.size()));
    }
  }
  return waits;
}

TEST_SUITE_BEGIN("scheduler/idle_connections");

// The case first waits some seconds, until unused memory is released and the monitor sleeps.
// WEFT_IDLE_CONNECTIONS and WEFT_IDLE_SECONDS set the number and the time.
THREAD_TEST_CASE_WITH("no thread of the runtime wakes while all connections are idle",
                      {.workers = {1, 4, 64}}) {
  const weft::base::shake::Still still;
  const int count = from_environment("WEFT_IDLE_CONNECTIONS", 200);
  const std::chrono::seconds pause(from_environment("WEFT_IDLE_SECONDS", 1));
  const weft::test::DescriptorLimit enough(static_cast<rlim_t>(2 * count + 500));
  auto connections = runtime.run([&] { return connect(count); });
  std::atomic<int> answered{0};
  for (Connection& each : connections) {
    runtime.go([&, &server = each.server] {
      std::byte byte{};
      if (!server.read_exactly(std::span(&byte, 1)).error) ++answered;
    });
  }
  weft::test::await_parked(static_cast<std::uint64_t>(count));
  // The test fails at its deadline if this loop never ends.
  std::uint64_t before = 0;
  do {
    before = count_waits_of_runtime();
    std::this_thread::sleep_for(pause);
  } while (count_waits_of_runtime() != before);
  runtime.run([&] {
    const std::byte byte{1};
    for (Connection& each : connections) {
      CHECK(!each.client.write_all(std::span(&byte, 1)).error);
    }
  });
  CHECK(runtime.wait_idle_for(1h));
  CHECK(answered == count);
}

TEST_SUITE_END();

}  // namespace
