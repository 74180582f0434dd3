// Tests the retirement of workers without locks or fibers.
#include "pool/core/worker_set.hpp"

#include <weft/detail/local_node.hpp>
#include <weft/pool_options.hpp>

#include "pool/core/pool_state.hpp"
#include "tests/support/fiber_test.hpp"

namespace {

using namespace weft;
using pool::Effects;
using pool::PoolState;
using pool::PoolWorker;
using pool::WorkerObjects;
using pool::WorkerSet;

TEST_SUITE_BEGIN("pool/worker_set");

TEST_CASE(
    "a retired worker counts towards the capacity until its per-worker objects are destroyed") {
  const PoolOptions options{.capacity = 2};
  PoolState state(options, false);
  WorkerSet& workers = state.workers;
  detail::LocalNode* locals = nullptr;
  detail::LocalNode object{nullptr, 1, [](detail::LocalNode*) noexcept {}};
  WorkerObjects objects(locals, nullptr);
  PoolWorker idle(objects);
  workers.begin_start();
  CHECK(workers.arrive());
  workers.go_idle(idle);
  locals = &object;
  Effects effects;
  workers.retire_coldest(effects);
  CHECK(idle.retired);
  CHECK(workers.live() == 1);
  CHECK(workers.staying() == 0);
  CHECK(state.must_grow(1));
  state.resize(1);
  CHECK(!state.must_grow(1));
  objects.destroy();
  CHECK(locals == nullptr);
  workers.end_clearing();
  CHECK(workers.staying() == 1);
  CHECK(workers.retired() == 0);
  workers.begin_clearing();
  workers.leave_clearing();
  CHECK(workers.live() == 0);
  CHECK(workers.retired() == 1);
  CHECK(state.must_grow(1));
}

TEST_CASE("a surplus worker that is still starting retires as soon as its start is complete") {
  const PoolOptions options{.capacity = 2};
  PoolState state(options, false);
  WorkerSet& workers = state.workers;
  PoolWorker idle;
  workers.begin_start();
  CHECK(workers.arrive());
  workers.go_idle(idle);
  (void)workers.call();
  workers.begin_start();
  state.resize(1);
  Effects effects;
  workers.retire_surplus(effects);
  CHECK(workers.live() == 1);  // It retires the spawned worker.
  CHECK(!workers.has_surplus());
  workers.set_limit(0);
  workers.retire_surplus(effects);
  CHECK(workers.live() == 1);
  CHECK(!workers.arrive());
  workers.arrive_again();
  CHECK(workers.has_surplus());
}

TEST_SUITE_END();

}  // namespace
