// Declares what the tests with Boost.Beast share.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <weft/asio/stream.hpp>
#include <weft/spawn_options.hpp>

namespace weft::test {

// Asio opens a descriptor for the first timer of the process; it must not count as a test's leak.
[[maybe_unused]] inline const bool kHasTimers = [] {
  const boost::asio::steady_timer timer(asio::detail::unused_context());
  return true;
}();

// Beast's calls keep buffers on the stack, so their fibers need a large stack.
inline constexpr SpawnOptions kLarge = {.stack_size = 256 * 1024};

}  // namespace weft::test
