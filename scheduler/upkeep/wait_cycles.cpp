#include "scheduler/upkeep/wait_cycles.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <unordered_map>
#include <utility>
#include <weft/detail/lock_owner.hpp>
#include <weft/detail/waiter.hpp>

#include "base/lock_owners.hpp"
#include "base/read_memory.hpp"
#include "fibers/calls/call_walk.hpp"
#include "fibers/fiber_store.hpp"
#include "fibers/sanitizer.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/tuning.hpp"
#include "scheduler/upkeep/census.hpp"

namespace weft::scheduler {

using detail::Waiter;
using detail::WaitReason;
using fibers::Fiber;
using fibers::FiberState;
using fibers::Stack;

namespace {

using Word = std::uintptr_t;

Word word_of(const void* address) noexcept { return reinterpret_cast<Word>(address); }
const void* address_of(Word number) noexcept {
  return reinterpret_cast<const void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

// Describes a parked fiber's wait. The fiber's stack contains the addresses of the awaited object's
// lock and of the fiber's Waiter in that object's list. In each such object, this list starts at
// the first aligned word after the lock. Both kinds of mutexes store their state before the lock; a
// Mutex stores its LockOwner between the lock and the list.
struct ParkedWait {
  Word lock = 0;  // 0: unknown.
  Word waiter = 0;
  Word ahead = 0;              // The nearest fiber ahead in the list whose wait has no limit.
  std::uint32_t owner = 0;     // A LockOwner's digest.
  bool has_one_owner = false;  // The mutex is locked, and not by readers.

  friend bool operator==(const ParkedWait&, const ParkedWait&) = default;
};

constexpr Word kMutexStateBytes = 4;
constexpr std::uint32_t kMutexIsLocked = 1;
constexpr Word kWaitGroupCountBytes = 8;
constexpr std::size_t kMostInList = 10'000;
// The indices of words in a Waiter.
constexpr std::size_t kNext = offsetof(Waiter, next) / sizeof(Word);
constexpr std::size_t kWaker = offsetof(Waiter, waker) / sizeof(Word);
constexpr std::size_t kClaim = offsetof(Waiter, claim) / sizeof(Word);
constexpr std::size_t kFlags = offsetof(Waiter, linked) / sizeof(Word);

// A copy of an object's lock state and of its list of waiters.
struct ListView {
  std::uint32_t owner = 0;
  bool has_one_owner = false;
  std::unordered_map<Word, Word> waiters;  // Maps a Waiter to its ParkedWait::ahead.
};

void read_state(Word lock, ListView& view) noexcept {
  std::array<std::uint32_t, 2> words{};
  if (!base::read_memory(address_of(lock - kMutexStateBytes), words.data(), sizeof words)) return;
  // The second word contains the lock byte (0 if the lock is free) and three bytes of a LockOwner.
  constexpr std::uint32_t kLockBits = 0xff;
  if ((words[0] & kMutexIsLocked) == 0 || (words[1] & kLockBits) != 0) return;
  view.has_one_owner = true;
  view.owner = words[1] >> 8;
}

ListView read_list(Word lock, WaitReason reason) {
  ListView view;
  const Word list = (lock / sizeof(Word) + 1) * sizeof(Word);
  std::uint8_t is_locked = 1;
  std::array<Word, 2> ends{};
  if (!base::read_memory(address_of(list), ends.data(), sizeof ends)) return view;
  Word ahead = 0;
  for (Word waiter = ends[0]; waiter != 0 && view.waiters.size() < kMostInList;) {
    if (!view.waiters.emplace(waiter, ahead).second) break;
    std::array<Word, kClaim + 1> words{};
    if (!base::read_memory(address_of(waiter), words.data(), sizeof words)) break;
    if (words[kClaim] == 0) ahead = words[kWaker];
    waiter = words[kNext];
  }
  // While the lock is held, the list may change, or the last waiter may not have parked yet.
  if (!base::read_memory(address_of(lock), &is_locked, 1) || is_locked != 0) view.waiters.clear();
  if (reason == WaitReason::mutex || is_shared_lock(reason)) read_state(lock, view);
  return view;
}

// These functions return a field of a stack's header, or 0 if the header cannot be read. The header
// of an inlined fiber is in its parent's frame, which may have been reused. The bytes are then
// arbitrary, so look_again() checks each cycle.
std::uint64_t read_id(const Stack& stack) noexcept {
  std::uint64_t id = 0;
  return base::read_memory(&stack.fiber_id, &id, sizeof id) ? id : 0;
}
Word read_lowest(const Stack& stack) noexcept {
  Word lowest = 0;
  return base::read_memory(&stack.lowest, &lowest, sizeof lowest) ? lowest : 0;
}

// The fibers that wait for other fibers, and the edges between them. Relaxed throughout: the
// states, numbers and digests of fibers may be stale, so look_again() checks each cycle.
class WaitGraph {
 public:
  WaitGraph(std::int64_t now, std::size_t most) : now_(now), most_(most) {}

  // Must be called once for each record.
  void add(Fiber& fiber) {
    if (!is_waiting(fiber) || !may_be_in_cycle(fiber) || nodes_.size() > most_) return;
    mark_waiting(fiber, now_);
    Stack* stack = fiber.stack.load(detail::acquire);  // [bound]
    if (stack == nullptr || !is_marked(fiber)) return;
    nodes_.push_back({&fiber,
                      stack,
                      read_lowest(*stack),
                      read_id(*stack),
                      static_cast<WaitReason>(fiber.reason()),
                      fiber.state.load(detail::relaxed) == FiberState::inlining,
                      {}});
  }
  // Must be called after all records have been added.
  void read_waits() {
    if (nodes_.size() > most_) nodes_.clear();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      headers_.emplace(word_of(node.stack), i);
      if (!node.is_inlining) node.wait = read_wait(node);
      if (node.wait.owner != 0 && node.reason == WaitReason::mutex) {
        owners_.try_emplace(node.wait.owner);
      }
      if (is_shared_lock(node.reason)) has_shared_locks_ = true;
      if (node.fiber->target_digest.load(detail::relaxed) == 0) continue;
      const void* target = node.fiber->task.join_target_hint(&base::read_memory);
      if (target != nullptr) targets_.emplace(word_of(target), i);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      note_owner(nodes_[i].id, i);
      if (!has_shared_locks_) continue;
      numbers_.emplace(nodes_[i].id, i);
      fibers_.emplace(word_of(nodes_[i].fiber), i);
    }
  }
  // If wants_owners() returns true after read_waits(), count_owner() must be called for each
  // record. A digest identifies the owner of a lock only if a single fiber has this digest.
  [[nodiscard]] bool wants_owners() const noexcept { return !owners_.empty(); }
  void count_owner(const Fiber& fiber) {
    const Stack* stack = fiber.stack.load(detail::acquire);  // [bound]
    if (stack == nullptr) return;
    const auto found = owners_.find(detail::LockOwner::digest_of(read_id(*stack)));
    if (found != owners_.end()) ++found->second.count;
  }

  std::vector<WaitCycle> find_cycles() {
    std::vector<WaitCycle> cycles;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].progress == Progress::unseen) search_from(i, cycles);
    }
    return cycles;
  }

 private:
  enum class Progress : std::uint8_t { unseen, on_path, done };
  struct Node {
    Fiber* fiber;
    Stack* stack;
    Word lowest;
    std::uint64_t id;
    WaitReason reason;
    bool is_inlining;
    ParkedWait wait;
    Progress progress = Progress::unseen;
    bool is_in_cycle = false;
  };
  struct Owner {
    std::size_t count = 0;  // The number of fibers with this digest.
    std::optional<std::size_t> node = {};
  };
  struct Step {
    std::size_t node;
    std::vector<std::size_t> edges;  // Edges that the search has not visited yet.
  };

  void note_owner(std::uint64_t id, std::size_t node) {
    const auto found = owners_.find(detail::LockOwner::digest_of(id));
    if (found != owners_.end()) found->second.node = node;
  }

  // Finds the lock and the Waiter on the fiber's stack. The switch's Departure contains the lock's
  // address, because the lock is released only after the switch. Ignores waits with a limit,
  // because the limit can end them.
  [[nodiscard]] ParkedWait read_wait(const Node& node) {
    if (!image_->copy_parked(*node.stack)) return {};
    const auto words = std::span(image_->words).first(image_->count);
    Word waiter = 0;
    for (std::size_t i = kWaker; i - kWaker + kFlags < words.size() && waiter == 0; ++i) {
      const std::size_t begin = i - kWaker;
      // The waiter is linked, and no notifier has claimed it.
      constexpr Word kFlagBits = 0xffff;
      if (words[i] == word_of(node.fiber) && words[begin + kClaim] == 0 &&
          (words[begin + kFlags] & kFlagBits) == 1) {
        waiter = image_->begin + begin * sizeof(Word);
      }
    }
    for (std::size_t i = 0; i + 2 < words.size() && waiter != 0; ++i) {
      if (words[i] != word_of(node.stack) || words[i + 1] == 0 || words[i + 2] == 0) continue;
      const ListView& list = list_of(words[i + 2], node.reason);
      const auto found = list.waiters.find(waiter);
      if (found == list.waiters.end()) continue;
      return {words[i + 2], waiter, found->second, list.owner, list.has_one_owner};
    }
    return {};
  }

  [[nodiscard]] const ListView& list_of(Word lock, WaitReason reason) {
    const auto [list, is_new] = lists_.try_emplace(lock);
    if (is_new) list->second = read_list(lock, reason);
    return list->second;
  }

  // Returns the fibers that must end or unlock a mutex before the node's fiber can continue.
  [[nodiscard]] std::vector<std::size_t> edges_of(const Node& node) const {
    std::vector<std::size_t> edges;
    if (node.is_inlining) {
      // If the header has been overwritten, its `lowest` may be any address, even above the header.
      const auto is_below = [&](const auto& header) { return header.first < word_of(node.stack); };
      for (auto at = headers_.lower_bound(node.lowest); at != headers_.end() && is_below(*at);
           ++at) {
        edges.push_back(at->second);
      }
      return edges;
    }
    if (node.wait.lock == 0) return edges;
    if (node.reason == WaitReason::mutex) {
      const auto owner = owners_.find(node.wait.owner);
      if (owner != owners_.end() && owner->second.count == 1 && owner->second.node) {
        edges.push_back(*owner->second.node);
      }
      return edges;
    }
    if (is_shared_lock(node.reason)) return edges_of_shared(node);
    const Word before = node.reason == WaitReason::wait_group ? kWaitGroupCountBytes : 0;
    const auto [first, last] = targets_.equal_range(node.wait.lock - before);
    for (auto at = first; at != last; ++at) edges.push_back(at->second);
    return edges;
  }

  // The fiber waits for every waiter ahead of it in the mutex's list whose wait has no limit. An
  // edge to the nearest such waiter suffices, because it waits for the others. A writer also waits
  // for each owner; a reader also waits for an owner that is a writer.
  [[nodiscard]] std::vector<std::size_t> edges_of_shared(const Node& node) const {
    std::vector<std::size_t> edges;
    const auto add = [&edges](const auto& nodes, auto key) {
      const auto found = nodes.find(key);
      if (found != nodes.end()) edges.push_back(found->second);
    };
    add(fibers_, node.wait.ahead);
    if (node.reason == WaitReason::shared_mutex_read && !node.wait.has_one_owner) return edges;
    const void* mutex = address_of(node.wait.lock - kMutexStateBytes);
    for (const std::uint64_t owner : base::shared_owners.owners_of(mutex)) {
      if (owner != 0) add(numbers_, owner);
    }
    return edges;
  }

  void search_from(std::size_t root, std::vector<WaitCycle>& cycles) {
    std::vector<Step> path;
    const auto enter = [&](std::size_t node) {
      nodes_[node].progress = Progress::on_path;
      path.push_back({node, edges_of(nodes_[node])});
    };
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.edges.empty()) {
        nodes_[step.node].progress = Progress::done;
        path.pop_back();
        continue;
      }
      const std::size_t next = step.edges.back();
      step.edges.pop_back();
      if (nodes_[next].progress == Progress::unseen)
        enter(next);
      else if (nodes_[next].progress == Progress::on_path)
        add_cycle(next, path, cycles);
    }
  }

  // The last fiber on the path waits for `first`, which is also on the path. The search
  // records only one cycle per fiber, because a fiber may be in thousands of cycles.
  void add_cycle(std::size_t first, const std::vector<Step>& path, std::vector<WaitCycle>& cycles) {
    WaitCycle cycle;
    const auto begin = std::ranges::find(path, first, &Step::node);
    const auto is_known = [this](const Step& step) { return nodes_[step.node].is_in_cycle; };
    if (std::any_of(begin, path.end(), is_known)) return;
    for (auto at = begin; at != path.end(); ++at) {
      const Node& node = nodes_[at->node];
      std::optional<fibers::Backtrace> calls = look_again(node);
      if (!calls) return;
      cycle.members.push_back(
          {node.fiber, node.id, node.reason, parked_time(*node.fiber, now_), *calls});
    }
    for (auto at = begin; at != path.end(); ++at) nodes_[at->node].is_in_cycle = true;
    cycles.push_back(std::move(cycle));
  }

  // Returns the call stack of the fiber; nothing if its wait has changed since the fiber was added.
  [[nodiscard]] std::optional<fibers::Backtrace> look_again(const Node& node) {
    fibers::Backtrace calls;
    if (!node.is_inlining) {
      lists_.clear();
      if (read_wait(node) != node.wait) return std::nullopt;
      if (!fibers::kSanitized && image_->registers.known != 0) calls = fibers::calls_in(*image_);
    }
    if (!is_waiting(*node.fiber) || !is_marked(*node.fiber)) return std::nullopt;
    return calls;
  }

  const std::int64_t now_;
  const std::size_t most_;
  const std::unique_ptr<fibers::ThreadImage> image_ = std::make_unique<fibers::ThreadImage>();
  std::vector<Node> nodes_;
  std::map<Word, std::size_t> headers_;                 // The key is a stack header's address.
  std::unordered_multimap<Word, std::size_t> targets_;  // The key is the join target.
  std::unordered_map<std::uint32_t, Owner> owners_;     // The key is the owner's digest.
  bool has_shared_locks_ = false;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;  // The key is the fiber's number.
  std::unordered_map<Word, std::size_t> fibers_;
  std::unordered_map<Word, ListView> lists_;  // The key is the lock.
};

}  // namespace

std::optional<std::vector<WaitCycle>> find_wait_cycles(Shared& shared, Deadline patience,
                                                       std::size_t most) {
  std::vector<WaitCycle> cycles;
  WaitGraph graph(Deadline::now_nanoseconds(), most);
  const bool is_listed = shared.stores().fibers().hold_until(patience, [&](auto for_each) {
    for_each([&](Fiber& fiber) {
      graph.add(fiber);
      return true;
    });
    graph.read_waits();
    if (graph.wants_owners()) {
      for_each([&](Fiber& fiber) {
        graph.count_owner(fiber);
        return true;
      });
    }
    cycles = graph.find_cycles();
  });
  return is_listed ? std::optional(std::move(cycles)) : std::nullopt;
}

bool CycleWatch::step(const Census& census, std::int64_t now, bool is_about_to_rest) noexcept {
  const std::size_t waits = census.waits_for_fibers();
  if (last_look_ == 0) last_look_ = now;
  const bool is_due = now - last_look_ >= tuning::kCyclePeriod;
  if (!is_due && !(is_about_to_rest && waits != waits_then_)) return true;
  try {
    // Another thread may hold the records' lock for a long time. The monitor therefore waits for
    // the lock only before it rests, when a delay does no harm.
    constexpr std::chrono::milliseconds kPatience(10);
    const Deadline patience = is_about_to_rest ? Deadline::after(kPatience) : Deadline::past();
    if (waits > 0 && !look(patience)) return false;
    last_look_ = now;
    waits_then_ = waits;
  } catch (const std::bad_alloc&) {
    last_look_ = now;  // Memory has run out, so the next search is made at its usual time.
  }
  return true;
}

bool CycleWatch::look(Deadline patience) {
  const auto found = find_wait_cycles(shared_, patience, tuning::kMostWaitsWatched);
  if (!found) return false;
  for (const WaitCycle& cycle : *found) {
    const auto first = std::ranges::min_element(cycle.members, {}, &WaitCycle::Member::id);
    if (std::ranges::find(reported_, first->id) != reported_.end()) continue;
    // The cycle stays in the list even if a later search misses it because a thread is using one of
    // its mutexes.
    reported_.push_back(first->id);
    shared_.options().monitor.on_cycle(cycle);
  }
  return true;
}

}  // namespace weft::scheduler
