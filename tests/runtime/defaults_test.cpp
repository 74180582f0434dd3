// Tests objects that are made without options.
#include <doctest/doctest.h>

#include <type_traits>
#include <weft/blocking_group.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>

#include "base/thread.hpp"

namespace {

TEST_SUITE_BEGIN("runtime/defaults");

TEST_CASE("the default capacity of a pool is the number of usable processors") {
  CHECK(weft::PoolOptions{}.capacity == weft::base::usable_processors());
}

TEST_CASE("a runtime, a pool or a group made with empty braces has default options") {
  weft::Runtime runtime({});
  weft::FiberPool pool({});
  CHECK(pool.capacity() == weft::PoolOptions{}.capacity);
  const weft::BlockingGroup group({});
  static_assert(!std::is_copy_constructible_v<weft::FiberPool>);
  static_assert(!std::is_move_constructible_v<weft::FiberPool>);
}

TEST_SUITE_END();

}  // namespace
