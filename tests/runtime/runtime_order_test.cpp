// Tests that runtimes need not end in the reverse order of their start.
#include <memory>
#include <system_error>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

using weft::Runtime;

TEST_SUITE_BEGIN("runtime/runtime_order");

TEST_CASE("a newer runtime becomes the current runtime when the older runtime ends") {
  const weft::test::TestGuard guard("older one ends");
  auto older = std::make_unique<Runtime>(weft::RuntimeOptions{.workers = 1});
  auto newer = std::make_unique<Runtime>(weft::RuntimeOptions{.workers = 1});
  older.reset();
  bool spawned = false;
  try {
    weft::spawn([] {}).join();
    spawned = true;
  } catch (const std::system_error&) {
  }
  CHECK(spawned);
  newer.reset();
}

TEST_CASE("no runtime is current after all runtimes have ended") {
  const weft::test::TestGuard guard("none is current");
  auto first = std::make_unique<Runtime>(weft::RuntimeOptions{.workers = 1});
  auto second = std::make_unique<Runtime>(weft::RuntimeOptions{.workers = 1});
  first.reset();
  second.reset();
  CHECK_THROWS_AS(weft::go([] {}), std::system_error);
}

TEST_SUITE_END();

}  // namespace
