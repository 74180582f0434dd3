// Under random operations, pools do the same as a slow and obviously correct model.
//
// With one worker, and tasks that continue when the test lets them, everything is determined: which
// callers are accepted, refused or blocked, which tasks start and in which order, the result of
// each caller, and all numbers. The test shortens a run that differs as long as it still differs,
// and prints it.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>

#include "tests/pool/property/model.hpp"
#include "tests/pool/property/ops.hpp"
#include "tests/pool/property/player.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/one_worker.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// Returns a description of the first difference, or an empty text.
class Comparison {
 public:
  Comparison(const Player& player, const PoolModel& model) {
    const Behaviour& is = player.behaviour();
    const Behaviour& expected = model.behaviour();
    for (const auto& [id, text] : expected.answers) compare_answer(id, is, text);
    for (const auto& [id, text] : is.answers) {
      if (expected.answers.count(id) == 0) note(name(id), text, "no answer yet");
    }
    compare("starts", list(is.started), list(expected.started));
    compare("handled", is.handled, expected.handled);
    compare_stats(player.pool().stats(), model.stats());
    compare("capacity", player.pool().capacity(), model.capacity());
    compare("available", player.pool().available_hint(), model.available());
    compare("is_closed", player.pool().is_closed_hint(), model.is_closed());
    compare("is_paused", player.pool().is_paused_hint(), model.is_paused());
  }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  void compare_answer(int id, const Behaviour& is, const std::string& expected) {
    const auto it = is.answers.find(id);
    compare(name(id), it == is.answers.end() ? "no answer yet" : it->second, expected);
  }
  void compare_stats(const PoolStats& is, const PoolStats& expected) {
    compare("live", is.live, expected.live);
    compare("busy", is.busy, expected.busy);
    compare("idle", is.idle, expected.idle);
    compare("released", is.released, expected.released);
    compare("in_callers", is.in_callers, expected.in_callers);
    compare("queued", is.queued, expected.queued);
    compare("blocked", is.blocked, expected.blocked);
    compare("submitted", is.submitted, expected.submitted);
    compare("completed", is.completed, expected.completed);
    compare("failed", is.failed, expected.failed);
    compare("cancelled", is.cancelled, expected.cancelled);
    compare("rejected", is.rejected, expected.rejected);
    compare("started", is.started, expected.started);
    compare("retired", is.retired, expected.retired);
  }
  template <class T>
  void compare(const std::string& what, const T& is, const T& expected) {
    if (is != expected) note(what, is, expected);
  }
  template <class T, class U>
  void note(const std::string& what, const T& is, const U& expected) {
    text_ << "  " << what << " is " << is << ", expected " << expected << '\n';
  }
  static std::string name(int id) { return "the answer to #" + std::to_string(id); }
  static std::string list(const std::vector<int>& ids) {
    std::string text;
    for (const int id : ids) text += '#' + std::to_string(id) + ' ';
    return text;
  }

  std::ostringstream text_;
};

// Compares a pool with the model, operation by operation. Use it in the main fiber of `runtime`.
class Comparing {
 public:
  explicit Comparing(Runtime& runtime) : runtime_(runtime) {}

  // Returns an empty text if both agree throughout; otherwise the place where they differ.
  [[nodiscard]] std::string play(const PoolOptions& options, const std::vector<Op>& ops) {
    const std::uint64_t fibers = runtime_.stats().live;
    auto player = std::make_unique<Player>(options);
    PoolModel model(options);
    std::string difference = follow(*player, model, ops, options.on_full);
    if (!player->end()) {
      is_stuck_ = true;
      (void)player.release();  // Callers still use it.
      return difference + "the pool cannot be taken down\n";
    }
    player->settle();
    if (runtime_.stats().live != fibers) difference += "fibers are left after the join\n";
    return difference;
  }
  // Returns whether a pool could not be destroyed, so that the runtime cannot be destroyed either.
  [[nodiscard]] bool is_stuck() const { return is_stuck_; }

 private:
  static std::string follow(Player& player, PoolModel& model, const std::vector<Op>& ops,
                            OnFull when_full) {
    std::string difference = settle(player, model, "at the beginning");
    bool settled = true;
    for (const Op& op : ops) {
      const bool is_direct = Player::is_direct(op, when_full);
      if (!is_direct && !settled) difference = settle(player, model, "before " + to_string(op));
      if (!difference.empty()) break;
      player.apply(op);
      model.apply(op);
      settled = op.settles || !is_direct;
      if (settled) difference = settle(player, model, "after " + to_string(op));
    }
    return difference;
  }
  static std::string settle(Player& player, PoolModel& model, const std::string& where) {
    player.settle();
    model.settle(player.pool().stats());
    const std::string text = Comparison(player, model).text();
    return text.empty() ? text : where + ":\n" + text;
  }

  Runtime& runtime_;
  bool is_stuck_ = false;
};

// Omits as many operations as possible while there still is a difference.
std::vector<Op> shortened(Comparing& comparing, const PoolOptions& options, std::vector<Op> ops) {
  int tries_left = 500;
  for (std::size_t size = ops.size() / 2; size > 0; size /= 2) {
    for (std::size_t from = 0; from < ops.size() && tries_left > 0;) {
      std::vector<Op> shorter = ops;
      const auto first = shorter.begin() + static_cast<std::ptrdiff_t>(from);
      const auto count = std::min(size, ops.size() - from);
      shorter.erase(first, first + static_cast<std::ptrdiff_t>(count));
      --tries_left;
      if (comparing.play(options, shorter).empty()) {
        from += size;
      } else {
        ops = std::move(shorter);
      }
    }
  }
  return ops;
}

void compare_many_runs(Comparing& comparing, Kind kind) {
  const std::uint64_t runs = (kind == Kind::by_load ? 120 : 400) / kSlowdown;
  constexpr int kOps = 200;
  for (std::uint64_t run = 0; run < runs; ++run) {
    Random random(run);
    const PoolOptions options =
        kind == Kind::by_load ? random_options_by_load(random) : random_options(random);
    std::vector<Op> ops = random_ops(random, kOps, kind);
    // A bulk that has to wait for room, or that runs tasks itself, consists of many calls; see
    // pool/bulk.
    const bool has_bulk =
        options.on_full == OnFull::reject || options.on_full == OnFull::drop_oldest;
    for (Op& op : ops) {  // Starts all that the capacity allows.
      if (options.grow.kind() == GrowPolicy::Kind::eager)
        op.number = std::min<std::size_t>(op.number, 20);
    }
    if (!has_bulk) std::erase_if(ops, [](const Op& op) { return op.act == Act::bulk; });
    append_end(ops);
    if (comparing.play(options, ops).empty()) continue;
    ops = shortened(comparing, options, std::move(ops));
    std::string text = to_string(options) + '\n';
    for (const Op& op : ops) text += to_string(op) + '\n';
    text += comparing.play(options, ops);
    FAIL_CHECK("run ", run, " of ", runs, ", shortened:\n", text);
    return;
  }
}

}  // namespace

TEST_SUITE_BEGIN("pool/property");

namespace {

void compare(const char* what, Kind kind) {
  if (!one_worker_keeps_order()) return;
  const TestGuard guard(what);
  auto runtime = std::make_unique<Runtime>(RuntimeOptions{.workers = 1, .monitor = false});
  Comparing comparing(*runtime);
  runtime->run([&] { compare_many_runs(comparing, kind); });
  if (comparing.is_stuck()) (void)runtime.release();
}

}  // namespace

TEST_CASE("a pool behaves like its reference model under random operations") {
  compare("a pool and its model", Kind::plain_tasks);
}

TEST_CASE("a pool with load_factor behaves like its reference model under random operations") {
  compare("a pool and its model, by load", Kind::by_load);
}

TEST_CASE(
    "a pool with priorities, keys and weights behaves like its reference model under random "
    "operations") {
  compare("a pool and its model, with options", Kind::with_options);
}

TEST_SUITE_END();
