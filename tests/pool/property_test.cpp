// Pools under random operations do what a slow and obviously right model of them does.
//
// With one worker, and tasks that go on when the test says so, all that happens is determined: who
// is accepted, refused or blocked, which tasks start and in which order, who is told what, and all
// numbers. A run that differs is made shorter as long as it differs, and printed.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/this_fiber.hpp>

#include "tests/pool/property_model.hpp"
#include "tests/pool/property_ops.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// Does the same operations with a real pool. Lives in the main fiber of a runtime of one worker.
class Player {
 public:
  explicit Player(PoolOptions options) : pool_(handling_exceptions(std::move(options))) {}

  // Whether the main fiber can make the call itself, so that nothing else runs before it returns.
  // A cancel needs the handle, which an async() that was blocked returns a moment after its task
  // was accepted.
  [[nodiscard]] static bool is_direct(const Op& op, OnFull when_full) {
    if (op.act == Act::submit)
      return when_full == OnFull::reject || when_full == OnFull::drop_oldest;
    return op.act == Act::try_submit || (op.act >= Act::open && op.act <= Act::resume &&
                                         op.act != Act::cancel && op.act != Act::stop);
  }
  void apply(const Op& op) {
    if (op.has_task()) {
      gates_[op.id];
      stops_[op.id];
    }
    if (is_direct(op, when_full_)) return make(op);
    ++helpers_;
    const bool by_clock = op.act == Act::submit_past || op.act == Act::wait_idle_past;
    if (by_clock) ++on_the_clock_;
    go([this, op, by_clock] {
      make(op);
      --helpers_;
      if (by_clock) --on_the_clock_;
    });
  }
  // Lets everybody go on until nobody can.
  void settle() const {
    // More than there are wakes one after the other: each lets all that are ready run.
    constexpr int kPasses = 40;
    // A deadline that has passed is seen some time.
    constexpr int kPassesOfTheClock = 100'000;
    for (int i = 0; i < kPassesOfTheClock && on_the_clock_ > 0; ++i) this_fiber::yield();
    for (int i = 0; i < kPasses; ++i) this_fiber::yield();
  }

  [[nodiscard]] const Behaviour& behaviour() const { return behaviour_; }
  [[nodiscard]] const FiberPool& pool() const { return pool_; }

  // False if a party or the pool itself is stuck, so that this object must be left alone.
  [[nodiscard]] bool end() {
    for (auto& [id, gate] : gates_) gate.set();
    for (auto& [id, stop] : stops_) stop.request_stop();
    pool_.close(Close::discard);
    settle();
    return helpers_ == 0 && pool_.join_until(Deadline::past());
  }

 private:
  PoolOptions handling_exceptions(PoolOptions options) {
    options.on_exception = [this](std::exception_ptr) { ++behaviour_.handled; };
    when_full_ = options.on_full;
    return options;
  }

  void make(const Op& op) {
    if (op.has_task() && op.course == Course::stoppable) {
      return offer(op, [this, op](const std::stop_token& token) {
        behaviour_.started.push_back(op.id);
        (void)gates_[op.id].wait_until(token);
        if (op.throws) throw 1;
      });
    }
    if (op.has_task()) {
      return offer(op, [this, op] {
        behaviour_.started.push_back(op.id);
        if (op.course == Course::gated) gates_[op.id].wait();
        if (op.throws) throw 1;
      });
    }
    steer(op);
  }
  template <class Task>
  void offer(const Op& op, Task task) {
    switch (op.act) {
      case Act::submit:
        return answer(op.id, pool_.submit(std::move(task)));
      case Act::try_submit:
        return answer(op.id, pool_.try_submit(std::move(task)));
      case Act::submit_past:
        return answer(op.id, pool_.submit_until(Deadline::past(), std::move(task)));
      case Act::submit_stopping: {
        const std::stop_token token = stops_[op.id].get_token();
        return answer(op.id, pool_.submit_until(token, std::move(task)));
      }
      case Act::run:
        return answer_end(op.id, [&] { pool_.run(task); });
      default:
        return answer_end(op.id, [&] {
          PoolTask<void>& handle = handles_[op.id];
          handle = pool_.async(std::move(task));
          answer(op.id, std::error_code());
          handle.wait();
          handle.get();
        });
    }
  }
  void steer(const Op& op) {
    switch (op.act) {
      case Act::open:
        if (const auto gate = gates_.find(op.target); gate != gates_.end()) gate->second.set();
        return;
      case Act::cancel: {
        const auto handle = handles_.find(op.target);
        if (handle == handles_.end() || !handle->second.valid() || handle->second.ready()) return;
        return answer(op.id, handle->second.cancel());
      }
      case Act::stop:
        if (const auto stop = stops_.find(op.target); stop != stops_.end()) {
          stop->second.request_stop();
        }
        return;
      case Act::resize:
        return pool_.resize(op.number);
      case Act::pause:
        return pool_.pause();
      case Act::resume:
        return pool_.resume();
      case Act::close_drain:
        return pool_.close(Close::drain);
      case Act::close_discard:
        return pool_.close(Close::discard);
      case Act::close_cancel:
        return pool_.close(Close::cancel);
      case Act::reopen:
        return pool_.reopen();
      case Act::wait_idle:
        return answer(op.id, pool_.wait_idle_until({}));
      case Act::wait_idle_past:
        return answer(op.id, pool_.wait_idle_until(Deadline::past()));
      case Act::wait_paused:
        return answer(op.id, pool_.wait_paused());
      default:
        return answer(op.id, pool_.join_until({}));
    }
  }

  void answer(int id, bool yes) { behaviour_.answers[id] = yes ? "true" : "false"; }
  void answer(int id, std::error_code code) {
    const std::map<std::error_code, const char*> names{
        {{}, "accepted"},
        {Errc::closed, "closed"},
        {Errc::full, "full"},
        {Errc::timed_out, "timed out"},
        {Errc::cancelled, "cancelled"},
        {Errc::too_many_waiting, "too many waiting"},
        {std::make_error_code(std::errc::operation_canceled), "dropped"}};
    const auto name = names.find(code);
    behaviour_.answers[id] = name == names.end() ? code.message() : name->second;
  }
  template <class Call>
  void answer_end(int id, Call call) {
    try {
      call();
      behaviour_.answers[id] = "returned";
    } catch (const std::system_error& error) {
      answer(id, error.code());
    } catch (int) {
      behaviour_.answers[id] = "threw";
    }
  }

  OnFull when_full_ = OnFull::block;
  Behaviour behaviour_;
  std::map<int, weft::Event> gates_;
  std::map<int, std::stop_source> stops_;
  std::map<int, PoolTask<void>> handles_;
  int helpers_ = 0;
  int on_the_clock_ = 0;  // Of those.
  FiberPool pool_;
};

// The first difference, in words; empty if there is none.
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
    compare("available", player.pool().available(), model.available());
    compare("is_closed", player.pool().is_closed(), model.is_closed());
    compare("is_paused", player.pool().is_paused(), model.is_paused());
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
    compare("lent", is.lent, expected.lent);
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

// Compares a pool with the model, operation by operation. In the main fiber of `runtime`.
class Comparing {
 public:
  explicit Comparing(Runtime& runtime) : runtime_(runtime) {}

  // Empty if they agree throughout, else where they do not.
  [[nodiscard]] std::string play(const PoolOptions& options, const std::vector<Op>& ops) {
    const std::uint64_t fibers = runtime_.stats().live;
    auto player = std::make_unique<Player>(options);
    PoolModel model(options);
    std::string difference = follow(*player, model, ops, options.on_full);
    if (!player->end()) {
      is_stuck_ = true;
      (void)player.release();  // Parties are still inside.
      return difference + "the pool cannot be taken down\n";
    }
    player->settle();
    if (runtime_.stats().live != fibers) difference += "fibers are left after the join\n";
    return difference;
  }
  // Whether a pool could not be taken down, so that the runtime cannot be, either.
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

// Leaves out whatever can be left out so that there still is a difference.
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

[[maybe_unused]] void compare_many_runs(Comparing& comparing) {
  constexpr std::uint64_t kRuns = 400 / kSlowdown;
  constexpr int kOps = 200;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    Random random(run);
    const PoolOptions options = random_options(random);
    std::vector<Op> ops = random_ops(random, kOps);
    append_end(ops);
    if (comparing.play(options, ops).empty()) continue;
    ops = shortened(comparing, options, std::move(ops));
    std::string text = to_string(options) + '\n';
    for (const Op& op : ops) text += to_string(op) + '\n';
    text += comparing.play(options, ops);
    FAIL_CHECK("run ", run, " of ", kRuns, ", shortened:\n", text);
    return;
  }
}

}  // namespace

TEST_SUITE_BEGIN("pool/property");

TEST_CASE("a pool does what its model does, whatever is done to it") {
#ifdef WEFT_TSAN_NO_SYNC
  MESSAGE("skipped: its fibers share data without a lock, as those of a single worker may");
#else
  const TestGuard guard("a pool and its model");
  auto runtime = std::make_unique<Runtime>(RuntimeOptions{.workers = 1});
  Comparing comparing(*runtime);
  runtime->run([&] { compare_many_runs(comparing); });
  if (comparing.is_stuck()) (void)runtime.release();
#endif
}

TEST_SUITE_END();
