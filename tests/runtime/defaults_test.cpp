// What is made without options.
#include <doctest/doctest.h>

#include <type_traits>
#include <weft/blocking_group.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>

#include "base/thread.hpp"

namespace {

TEST_SUITE_BEGIN("runtime/defaults");

TEST_CASE("a pool has as many workers by default as processors may be used") {
  CHECK(weft::PoolOptions{}.capacity == weft::base::usable_processors());
}

TEST_CASE("empty braces are default options, and not an object to copy") {
  weft::Runtime runtime({});
  weft::FiberPool pool({});
  CHECK(pool.capacity() == weft::PoolOptions{}.capacity);
  const weft::BlockingGroup group({});
  static_assert(!std::is_copy_constructible_v<weft::FiberPool>);
  static_assert(!std::is_move_constructible_v<weft::FiberPool>);
}

TEST_SUITE_END();

}  // namespace
