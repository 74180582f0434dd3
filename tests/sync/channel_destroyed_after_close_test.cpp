#include <memory>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/select.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sync/channel_destroyed_after_close");

using weft::Channel;

// Regression test: close() looked for further waiters after it had woken the last one.
FIBER_TEST_CASE(
    "a receiver may destroy a channel after it has seen the channel's end, even before close() has "
    "returned") {
  const int rounds = static_cast<int>(5000 / weft::test::kSlowdown);
  for (int i = 0; i < rounds; ++i) {
    auto channel = std::make_unique<Channel<int>>();
    weft::go([&channel = *channel] { channel.close(); });
    if (i % 2 == 0) {
      CHECK_FALSE(channel->receive().has_value());
    } else {
      weft::select(weft::on_receive(*channel, [](std::optional<int> value) { CHECK(!value); }));
    }
  }
}

TEST_SUITE_END();
