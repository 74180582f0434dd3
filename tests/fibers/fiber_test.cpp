#include "fibers/fiber.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using weft::fibers::Fiber;
using weft::fibers::Stack;

constexpr std::int64_t kTick = Fiber::kTick;

TEST_SUITE_BEGIN("fibers/fiber");

TEST_CASE("a fiber reports its spawn site both before and after it gets a stack") {
  Fiber fiber;
  Stack stack;
  CHECK(fiber.site_hint() == nullptr);
  weft::detail::Task task([] {});
  const void* caller = static_cast<const char*>(task.image_hint()) + 100;
  fiber.set_up(std::move(task), weft::fibers::kDefaultSizeClass, caller);
  CHECK(fiber.site_hint() == caller);
  fiber.bind(stack);
  CHECK(fiber.site_hint() == caller);
  fiber.set_ready_since(78 * kTick);
  CHECK(fiber.site_hint() == caller);
  fiber.task.reset();
}

TEST_CASE("the time at which a fiber became ready is stored with an accuracy of one tick") {
  Fiber fiber;
  Stack stack;
  fiber.bind(stack);
  // Tests one day around each of several moments, including moments at which the ticks wrap around.
  constexpr std::int64_t kDay = std::int64_t{24} * 3'600 * 1'000'000'000;
  for (const std::int64_t moment : {std::int64_t{0}, kTick << 31, kTick << 32, 1'000 * kDay}) {
    for (const std::int64_t distance : {-kDay, -kTick, std::int64_t{0}, kTick, kDay}) {
      const std::int64_t since = moment + kDay + distance;
      fiber.set_ready_since(since);
      const std::int64_t told = fiber.ready_since(moment + kDay);
      CHECK(told <= since + kTick);
      CHECK(told > since - kTick);
    }
  }
}

TEST_CASE("a fiber without a stored ready time reports that it became ready at time 0") {
  Fiber fiber;
  Stack stack;
  fiber.site_or_time.store(~std::uint32_t{0}, weft::detail::relaxed);  // A site.
  CHECK(fiber.ready_since(kTick) == 0);
  fiber.bind(stack);
  CHECK(fiber.ready_since(kTick) == 0);
  fiber.set_ready_since(kTick);
  CHECK(fiber.ready_since(kTick) == kTick);
}

TEST_SUITE_END();

}  // namespace
