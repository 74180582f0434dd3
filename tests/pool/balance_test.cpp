// Which shard a task goes to: PoolOptions::balance.
#include <array>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>
#include <weft/pool.hpp>

#include "tests/pool/pool_test.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace weft::test;

namespace {

constexpr std::size_t kEach = 4;

// Tasks of one key share a shard, whatever the balance: so they can be put into a certain one, and
// show how much room is left there. The pools are paused: what is in a shard stays there.
class TwoShards {
 public:
  explicit TwoShards(Balance balance)
      : pool_({.capacity = 2 * kEach, .on_full = OnFull::reject, .shards = 2, .balance = balance}) {
    pool_.pause();
    FiberPool small({.capacity = 2, .on_full = OnFull::reject, .shards = 2});
    small.pause();
    // The one that is in the shard of key 0 keeps others of that shard out.
    CHECK(!small.try_submit({.key = 0}, [] {}));
    while (small.try_submit({.key = key_of_other_}, [] {})) ++key_of_other_;
    small.close(Close::discard);
  }
  ~TwoShards() { pool_.close(Close::discard); }

  FiberPool& pool() { return pool_; }
  // Takes it.
  [[nodiscard]] std::array<std::size_t, 2> room_left() {
    return {put_into(0, 2 * kEach), put_into(1, 2 * kEach)};
  }
  // How many of them have found room.
  std::size_t put_into(std::size_t shard, std::size_t tasks) {
    std::size_t accepted = 0;
    while (accepted < tasks && !pool_.try_submit({.key = shard == 0 ? 0 : key_of_other_}, [] {})) {
      ++accepted;
    }
    return accepted;
  }

 private:
  FiberPool pool_;
  int key_of_other_ = 1;
};

}  // namespace

TEST_SUITE_BEGIN("pool/balance");

// From a plain thread: a fiber may go on on another thread, which has turns of its own.
THREAD_TEST_CASE("by turns each shard gets every other task of a thread") {
  (void)runtime;
  TwoShards shards(Balance::round_robin);
  for (int i = 0; i < 6; ++i) CHECK(!shards.pool().try_submit([] {}));
  CHECK(shards.room_left() == std::array<std::size_t, 2>{1, 1});
}

THREAD_TEST_CASE("by turns a full shard is passed over, and gets its turn again") {
  (void)runtime;
  TwoShards shards(Balance::round_robin);
  CHECK(shards.put_into(0, kEach) == kEach);
  for (int i = 0; i < 3; ++i) CHECK(!shards.pool().try_submit([] {}));
  CHECK(shards.room_left() == std::array<std::size_t, 2>{0, 1});
  CHECK(shards.pool().try_submit([] {}) == Errc::full);
}

FIBER_TEST_CASE("by load the shard with the fewest tasks gets the next one") {
  for (const std::size_t loaded : {0u, 1u}) {
    TwoShards shards(Balance::least_tasks);
    CHECK(shards.put_into(loaded, 3) == 3);
    for (int i = 0; i < 3; ++i) CHECK(!shards.pool().try_submit([] {}));
    CHECK(shards.room_left() == std::array<std::size_t, 2>{1, 1});
  }
}

FIBER_TEST_CASE("what shards cannot do is refused by name") {
  FiberPool pool({.capacity = 2, .shards = 2});
  std::string message;
  try {
    (void)pool.wait_for_completed(1);
  } catch (const std::system_error& error) {
    CHECK(error.code() == std::errc::operation_not_supported);
    message = error.what();
  }
  CHECK(message.find("wait_for_completed with shards") != std::string::npos);
  CHECK(refused({.capacity = 2, .on_tick = {.call = [](const PoolStats&) {}}, .shards = 2},
                "on_tick"));
}

TEST_SUITE_END();
