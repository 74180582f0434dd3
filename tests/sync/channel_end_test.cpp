// Regression test: close() accessed the channel's lock after it had woken the receivers. A receiver
// could have destroyed the channel meanwhile, as a consumer may do after it has read to the end.
#include <weft/channel.hpp>

#include <cstring>
#include <memory>
#include <new>
#include <vector>
#include <weft/go.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

TEST_SUITE_BEGIN("sync/channel_end");

using Channel = weft::Channel<int>;

// Stores a channel. After the channel's end, its lock stays locked, so a late caller hangs, or a
// sanitizer reports the access.
class Place {
 public:
  Channel& make(std::size_t capacity) {
    return *::new (static_cast<void*>(bytes_)) Channel(capacity);
  }
  void end() {
    std::launder(reinterpret_cast<Channel*>(bytes_))->~Channel();
    std::memset(bytes_, 0x01, sizeof bytes_);
  }

 private:
  alignas(Channel) unsigned char bytes_[sizeof(Channel)];
};

FIBER_TEST_CASE(
    "a channel may be destroyed after a range-based loop over it has ended, even before close() "
    "has returned") {
  const std::size_t rounds = 20'000 / weft::test::kSlowdown;
  const std::unique_ptr<Place[]> places(new Place[rounds]);
  std::vector<weft::JoinHandle<void>> producers;
  for (std::size_t round = 0; round < rounds; ++round) {
    Channel& channel = places[round].make(round % 3);
    producers.push_back(weft::spawn([&channel] {
      CHECK(channel.send(1));
      CHECK(channel.close());
    }));
    int received = 0;
    for (const int value : channel) received += value;
    places[round].end();
    CHECK(received == 1);
  }
  for (auto& producer : producers) producer.join();
}

TEST_SUITE_END();

}  // namespace
