// Tests that a dump shows, besides a fiber's state, what it runs and where it was spawned.
#include <atomic>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

std::string dump_of(const weft::Runtime& runtime) {
  std::ostringstream out;
  runtime.dump(out);
  return out.str();
}

// Returns the rest of each line after `label`, up to a semicolon.
std::vector<std::string> find_each(const std::string& text, const std::string& label) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(label); at != std::string::npos; at = text.find(label, at)) {
    at += label.size();
    found.push_back(text.substr(at, text.find_first_of(";\n", at) - at));
  }
  return found;
}

// Waits until only the caller lives, because the other fibers use data on its stack.
void await_others(const weft::Runtime& runtime) {
  while (runtime.stats().live > 1) weft::this_fiber::yield();
}

struct Reader {
  weft::Channel<int>& channel;
  void operator()() const { (void)channel.receive(); }
};

TEST_SUITE_BEGIN("runtime/dump");

FIBER_TEST_CASE("names in a dump have no terminal control characters") {
  weft::this_fiber::set_name("red\x1b[31m\n");
  CHECK(dump_of(runtime).find(" 'red?[31m?' is running") != std::string::npos);
}

FIBER_TEST_CASE(
    "a dump shows the type of a fiber's callable before the fiber starts and while it runs") {
  weft::Channel<int> channel;
  std::atomic<int> started{0};
  for (int i = 0; i < 3; ++i) weft::go(Reader{channel});
  auto joinable = weft::spawn(Reader{channel});
  weft::go([&] {
    ++started;
    (void)channel.receive();
  });
  CHECK(find_each(dump_of(runtime), "runs (anonymous namespace)::Reader").size() == 4);
  while (started.load() == 0) weft::this_fiber::yield();
  CHECK(find_each(dump_of(runtime), "runs (anonymous namespace)::Reader").size() == 4);
  // One of them is the lambda, which each compiler names differently.
  CHECK(find_each(dump_of(runtime), "runs ").size() == 5);
  channel.close();
  joinable.join();
  await_others(runtime);
}

FIBER_TEST_CASE(
    "a dump shows the same spawn address for fibers that were spawned in the same place") {
  weft::Channel<int> channel;
  const auto receive = [&] { (void)channel.receive(); };
  for (int i = 0; i < 10; ++i) weft::go(receive);
  weft::go(receive);
  weft::go({.name = "with a name"}, receive);
  auto joinable = weft::spawn(receive);
  const std::vector<std::string> sites = find_each(dump_of(runtime), "spawned at ");
  CHECK(sites.size() == 14);  // The main fiber also has a site.
  const std::set<std::string> distinct(sites.begin(), sites.end());
  // At -O0, calls in one template have the same site, so the two plain calls may count as one.
  CHECK(distinct.size() >= 4);
  CHECK(distinct.size() <= 5);
  for (const std::string& site : sites) CHECK(site.find("runtime_tests+0x") != std::string::npos);
  channel.close();
  await_others(runtime);
}

FIBER_TEST_CASE("dump_fibers() shows the fibers of every runtime of the process") {
  const weft::Runtime other({.workers = 1});
  std::ostringstream out;
  weft::dump_fibers(out);
  CHECK(find_each(out.str(), "weft: ").size() == 2);
  CHECK(out.str().find("'main' is running") != std::string::npos);
}

TEST_CASE("dump_fibers() writes nothing without a runtime") {
  std::ostringstream out;
  weft::dump_fibers(out);
  CHECK(out.str().empty());
}

TEST_SUITE_END();

}  // namespace
