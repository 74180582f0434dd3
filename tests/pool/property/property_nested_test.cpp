// Nested pools keep their promises under random operations. The test checks them after each
// operation.
//
// Which of several pools is next at their parent depends on how the pools came to wait there. So
// the model is no second implementation, but states the promises: which tasks may run and in which
// order, that no caller waits or is refused without a reason, and the numbers.
//
// In half of the trees tasks have weights. Such a task may have left its queue and may wait for
// slots of a parent while other tasks begin. There the order is not promised, and the number of
// waiting tasks is less exact.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"
#include "tests/support/one_worker.hpp"
#include "tests/support/random.hpp"

using namespace weft;
using namespace weft::test;

namespace {

// A pool, and its state as a caller can know it. Tasks have numbers in the order of their calls.
struct Member {
  Member(const PoolOptions& its_options, Member* its_parent)
      : options(its_options),
        capacity(its_options.capacity),
        parent(its_parent),
        pool(its_options) {}

  const PoolOptions options;
  std::size_t capacity;
  Member* const parent;
  bool has_sub_pools = false;
  bool closed = false;
  bool paused = false;
  std::size_t running = 0;  // Includes tasks of its sub-pools.
  std::size_t weight = 0;   // The weight of the running tasks.
  std::size_t blocked = 0;  // Callers in submit().
  std::deque<int> waiting;  // Accepted tasks, then tasks of blocked callers.
  std::uint64_t accepted = 0;
  std::uint64_t ended = 0;
  std::uint64_t dropped = 0;
  std::uint64_t rejected = 0;
  FiberPool pool;

  // Returns whether this pool or one of its parents keeps a task from starting now.
  [[nodiscard]] bool is_held_back() const {
    return paused || running >= capacity || (parent != nullptr && parent->is_held_back());
  }
  // Returns the least capacity of this pool and its parents.
  [[nodiscard]] std::size_t least_capacity() const {
    return parent == nullptr ? capacity : std::min(capacity, parent->least_capacity());
  }
  [[nodiscard]] bool is_within(const Member& other) const {
    return this == &other || (parent != nullptr && parent->is_within(other));
  }
};

// A tree of pools. It lives in the main fiber of a runtime with one worker.
class Tree {
 public:
  explicit Tree(Random& random) : weighted_(random.one_in(2)) {
    add(random, nullptr);
    for (std::uint64_t i = 1 + random.below(3); i > 0; --i) {
      add(random, members_[random.below(members_.size())].get());
    }
  }

  // Performs an operation, lets all its effects happen, and checks all pools.
  void act(Random& random) {
    Member& member = *members_[random.below(members_.size())];
    const std::uint64_t choice = random.below(40);
    // A pool refuses a weight above its capacity.
    const std::size_t weight =
        weighted_ ? 1 + random.below(std::min<std::size_t>(3, member.capacity)) : 1;
    if (choice < 10) {
      submit(member, weight);
    } else if (choice < 18) {
      try_submit(member, weight);
    } else if (choice < 33) {
      open_one(random);
    } else if (choice < 35) {
      pause(member);
    } else if (choice < 37) {
      resume(member);
    } else if (choice < 38) {
      // A task that has its slots here and waits for slots of a parent begins even if this pool has
      // fewer slots by then.
      if (!weighted_) resize(member, 1 + random.below(4));
    } else if (random.one_in(3)) {
      close(member, random.one_in(2) ? Close::drain : Close::discard);
    } else {
      reopen(member);
    }
    settle();
    for (const auto& each : members_) look_at(*each);
  }
  // Ends all tasks and pools.
  void end() {
    close(*members_.front(), Close::drain);
    for (settle(); !gates_.empty(); settle()) {
      for (auto& [number, gate] : gates_) gate->set();
    }
    for (const auto& each : members_) {
      look_at(*each);
      expect(each->pool.available_hint() == each->least_capacity(), "a slot is lost", *each);
      expect(each->waiting.empty(), "a task is lost", *each);
      expect(each->blocked == 0, "a caller is still blocked", *each);
    }
    while (!members_.empty()) members_.pop_back();  // Sub-pools before parents.
  }
  // The operations up to the first error, and the error; empty if there is none.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void add(Random& random, Member* parent) {
    constexpr std::array<std::size_t, 5> kQueues{0, 0, 1, 3, kUnlimited};
    PoolOptions options{.capacity = 1 + random.below(4),
                        .queue_capacity = kQueues[random.below(kQueues.size())],
                        .parent = parent == nullptr ? nullptr : &parent->pool};
    if (parent == nullptr) options.idle_timeout = kNever;
    members_.push_back(std::make_unique<Member>(options, parent));
    if (parent != nullptr) parent->has_sub_pools = true;
    trace_ << name(*members_.back()) << ": capacity " << options.capacity << ", queue "
           << options.queue_capacity << (parent == nullptr ? "" : ", parent " + name(*parent))
           << '\n';
  }
  [[nodiscard]] std::string name(const Member& member) const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].get() == &member) return "pool " + std::to_string(i);
    }
    return "no pool";
  }
  void note(const std::string& what, const Member& member) {
    trace_ << what << " of " << name(member) << '\n';
  }
  void expect(bool is_so, const std::string& complaint, const Member& member) {
    if (is_so || !problem_.empty()) return;
    problem_ = trace_.str() + complaint + ", " + name(member);
  }
  // Does the same as Player::settle().
  static void settle() {
    for (int i = 0; i < 60; ++i) this_fiber::yield();
  }

  // --- Tasks ---

  // Records the destruction of a callable.
  struct Presence {
    Presence(std::set<int>& its_gone, int its_number) : gone(its_gone), number(its_number) {}
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    ~Presence() { gone.insert(number); }

    std::set<int>& gone;
    const int number;
  };
  [[nodiscard]] auto task(Member& member, int number, std::size_t weight) {
    auto presence = std::make_unique<Presence>(gone_, number);
    return [this, &member, number, weight, presence = std::move(presence)] {
      Event gate;
      begin(member, number, weight, gate);
      gate.wait();
      end(member, number, weight);
    };
  }
  void begin(Member& member, int number, std::size_t weight, Event& gate) {
    gates_[number] = &gate;
    expect(!member.waiting.empty() && (weighted_ || member.waiting.front() == number),
           "a task starts that is not the first to wait", member);
    std::erase(member.waiting, number);
    for (Member* each = &member; each != nullptr; each = each->parent) {
      expect(weighted_ || !each->paused, "a task starts in a pause", *each);
      expect(each->running == 0 || each->weight + weight <= each->capacity,
             "more run than the capacity", *each);
      ++each->running;
      each->weight += weight;
    }
  }
  void end(Member& member, int number, std::size_t weight) {
    gates_.erase(number);
    for (Member* each = &member; each != nullptr; each = each->parent) {
      --each->running;
      each->weight -= weight;
    }
    ++member.ended;
  }
  // No caller is passed over: a blocked caller waits behind all accepted tasks.
  void submit(Member& member, std::size_t weight) {
    const int number = ++last_number_;
    note("submit #" + std::to_string(number) + ", weight " + std::to_string(weight), member);
    const bool was_closed = member.closed;
    if (!was_closed) member.waiting.push_back(number);
    ++member.blocked;
    go([this, &member, number, weight, was_closed] {
      const Accepted accepted =
          weighted_ ? member.pool.submit({.weight = weight}, task(member, number, weight))
                    : member.pool.submit(task(member, number, weight));
      count(member, number, accepted, was_closed);
      --member.blocked;
    });
  }
  void try_submit(Member& member, std::size_t weight) {
    const int number = ++last_number_;
    note("try_submit #" + std::to_string(number) + ", weight " + std::to_string(weight), member);
    const bool has_slot = !member.closed && !member.is_held_back() && member.waiting.empty();
    const std::size_t load = member.pool.stats().busy + member.pool.stats().queued;
    const std::size_t bound = member.options.queue_capacity == kUnlimited
                                  ? kUnlimited
                                  : member.capacity + member.options.queue_capacity;
    if (!member.closed) member.waiting.push_back(number);
    const Accepted accepted =
        weighted_ ? member.pool.try_submit({.weight = weight}, task(member, number, weight))
                  : member.pool.try_submit(task(member, number, weight));
    count(member, number, accepted, member.closed);
    if (weighted_) return;
    expect(accepted || !has_slot, "a task is refused though a slot is free", member);
    expect(!accepted || load < bound, "a task is accepted without room", member);
  }
  // A close that drains may admit a blocked caller, because it first ends the pauses.
  void count(Member& member, int number, const Accepted& accepted, bool was_closed) {
    if (accepted) {
      ++member.accepted;
      return expect(!was_closed, "a closed pool accepts", member);
    }
    ++member.rejected;
    const bool is_told_so = member.closed ? accepted == Errc::closed : accepted == Errc::full;
    expect(is_told_so, "a refusal is '" + accepted.error.message() + "'", member);
    std::erase(member.waiting, number);
  }
  void open_one(Random& random) {
    if (gates_.empty()) return;
    const auto it =
        std::next(gates_.begin(), static_cast<std::ptrdiff_t>(random.below(gates_.size())));
    trace_ << "open #" << it->first << '\n';
    it->second->set();
  }

  // --- Pools ---

  void pause(Member& member) {
    note("pause", member);
    member.paused = !member.closed;
    member.pool.pause();
  }
  void resume(Member& member) {
    note("resume", member);
    member.paused = false;
    member.pool.resume();
  }
  void resize(Member& member, std::size_t capacity) {
    note("resize to " + std::to_string(capacity), member);
    member.capacity = capacity;
    member.pool.resize(capacity);
  }
  void close(Member& closing, Close mode) {
    note(mode == Close::drain ? "close(drain)" : "close(discard)", closing);
    for (const auto& each : members_) {
      if (!each->is_within(closing)) continue;
      each->closed = true;
      each->paused = false;
      if (mode == Close::drain || weighted_) continue;
      // Each blocked caller gets a refusal.
      const std::size_t queued = each->waiting.size() - each->blocked;
      each->dropped += queued;
      each->waiting.erase(each->waiting.begin(),
                          each->waiting.begin() + static_cast<std::ptrdiff_t>(queued));
    }
    closing.pool.close(mode);
  }
  void reopen(Member& member) {
    note("reopen", member);
    if (member.parent == nullptr || !member.parent->closed) member.closed = false;
    member.pool.reopen();
  }

  // --- The promises, when nothing more can happen ---

  void look_at(Member& member) {
    const PoolStats stats = member.pool.stats();
    // A close that discards may leave a task with a weight, which waits for slots of a parent.
    if (weighted_) {
      member.dropped +=
          std::erase_if(member.waiting, [&](int number) { return gone_.contains(number); });
    }
    if (weighted_) return look_at_weighted(member, stats);
    expect(member.pool.is_closed_hint() == member.closed, "is_closed() is not so", member);
    expect(member.pool.is_paused_hint() == member.paused, "is_paused() is not so", member);
    expect(member.pool.capacity() == member.capacity, "capacity() is not so", member);
    expect(stats.busy == member.running, "busy is not so", member);
    expect(member.waiting.empty() || member.is_held_back(), "a task waits for no reason", member);
    look_at_books(member, stats);
    if (member.has_sub_pools) return;  // Sub-pools may wait for room in it.
    expect(stats.in_sub_pools == 0, "in_sub_pools is not so", member);
    expect(stats.blocked == member.blocked, "blocked is not so", member);
    expect(stats.blocked + stats.queued == member.waiting.size(), "queued is not so", member);
  }
  void look_at_weighted(Member& member, const PoolStats& stats) {
    expect(stats.busy >= member.running, "busy is not so", member);
    look_at_books(member, stats);
    if (member.has_sub_pools) return;
    expect(stats.blocked == member.blocked, "blocked is not so", member);
    // Tasks that have left the queue, and have not begun, are busy.
    expect(stats.blocked + stats.queued + stats.busy == member.waiting.size() + member.running,
           "queued is not so", member);
  }
  void look_at_books(Member& member, const PoolStats& stats) {
    expect(stats.live == stats.busy + stats.idle, "live is not so", member);
    expect(stats.submitted + stats.in_sub_pools ==
               stats.completed + stats.cancelled + stats.busy + stats.released + stats.queued,
           "the books do not balance", member);
    expect(stats.completed == member.ended, "completed is not so", member);
    expect(stats.submitted == member.accepted, "submitted is not so", member);
    expect(stats.cancelled == member.dropped, "cancelled is not so", member);
    expect(stats.rejected == member.rejected, "rejected is not so", member);
  }

  const bool weighted_;
  std::set<int> gone_;  // Tasks whose callables are destroyed. Outlives the pools.
  std::vector<std::unique_ptr<Member>> members_;
  std::map<int, Event*> gates_;  // For running tasks.
  int last_number_ = 0;
  std::ostringstream trace_;
  std::string problem_;
};

void play_many_runs() {
  const std::uint64_t runs = 300 / kSlowdown;
  constexpr int kOps = 120;
  for (std::uint64_t run = 0; run < runs; ++run) {
    Random random(run);
    Tree tree(random);
    for (int i = 0; i < kOps && tree.problem().empty(); ++i) tree.act(random);
    tree.end();
    if (tree.problem().empty()) continue;
    FAIL_CHECK("run ", run, " of ", runs, ":\n", tree.problem());
    return;
  }
}

TEST_SUITE_BEGIN("pool/property_nested");

TEST_CASE(
    "nested pools keep their capacities, start orders and statistics under random operations") {
  if (!one_worker_keeps_order()) return;
  const TestGuard guard("pools in pools");
  Runtime runtime({.workers = 1, .monitor = false});
  runtime.run(play_many_runs);
}

TEST_SUITE_END();

}  // namespace
