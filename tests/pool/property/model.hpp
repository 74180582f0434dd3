// Models a pool in a slow, obviously correct way. The property test compares the real pool with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>
#include <weft/pool_options.hpp>

#include "tests/pool/property/limit.hpp"
#include "tests/pool/property/op.hpp"
#include "tests/pool/property/queue.hpp"

namespace weft::test {

// The model. A call takes effect at once, as far as that needs only the calling fiber. settle()
// then acts for the workers and for blocked and waiting callers, until none can act.
class PoolModel {
 public:
  explicit PoolModel(const PoolOptions& options)
      : options_(options), capacity_(options.capacity), limit_(options) {
    if (options.prestart) start_workers(options.min_workers);
  }

  void apply(const Op& op) {
    if (op.has_task()) return call(op);
    switch (op.act) {
      case Act::bulk:
        return call_in_bulk(op);
      case Act::open:
        return open(op.target);
      case Act::cancel:
        return cancel(op);
      case Act::stop:
        return stop(op.target);
      case Act::resize:
        capacity_ = op.number;
        limit_.fit(capacity_, closed_);
        retire_surplus();
        admit();
        return grow();
      case Act::pause:
        paused_ = !closed_;
        return;
      case Act::resume:
        return resume();
      case Act::reopen:
        if (!std::exchange(closed_, false)) return;
        limit_.fit(capacity_, false);
        if (options_.prestart) start_workers(kept_workers());
        return;
      case Act::wait_idle:
        return idle_waiters_.push_back(op.id);
      case Act::wait_idle_past:
        return answer(op.id, is_idle() ? "true" : "false");
      case Act::wait_paused:
        if (!paused_) return answer(op.id, "false");
        return pause_waiters_.push_back(op.id);
      case Act::join:
        return joiners_.push_back(op.id);
      default:
        return close(op.act);
    }
  }

  // `seen` are the numbers of the real pool, which has choices. It may start fewer workers than
  // tasks that arrive at once, if each task that can run does run. Idle workers of a closed pool
  // may stay until the pool's next task ends.
  void settle(const PoolStats& seen) {
    grow();
    while (end_one() || start_one()) {
    }
    if (closed_ && running_.empty()) retire(live_);
    const std::size_t least = running_.size() + (can_start() ? 1 : 0);
    // A worker that was not started either does not live now, or was not retired.
    while (counted_.started > seen.started && (live_ > least || counted_.retired > seen.retired)) {
      --counted_.started;
      --(counted_.retired > seen.retired ? counted_.retired : live_);
    }
    while (closed_ && counted_.retired < seen.retired && live_ > least) retire(1);
    if (runs_nothing() && paused_) answer_all(pause_waiters_, "true");
    if (is_idle()) answer_all(idle_waiters_, "true");
    if (closed_ && live_ + in_callers_.size() == 0) answer_all(joiners_, "true");
  }

  [[nodiscard]] const Behaviour& behaviour() const { return behaviour_; }
  [[nodiscard]] bool is_closed() const { return closed_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t available() const { return capacity_ - std::min(capacity_, load()); }
  [[nodiscard]] PoolStats stats() const {
    PoolStats stats = counted_;
    stats.live = live_;
    stats.busy = running_.size();
    stats.idle = live_ - running_.size();
    stats.in_callers = in_callers_.size();
    stats.queued = queue_.size();
    stats.blocked = blocked_.size();
    return stats;
  }
  // Returns the tasks that wait at their gates, for which an open() or a cancel() has an effect.
  [[nodiscard]] const std::vector<Op>& running() const { return running_; }

 private:
  void answer(int id, const std::string& text) { behaviour_.answers[id] = text; }
  void answer_all(std::vector<int>& waiters, const char* text) {
    for (const int id : std::exchange(waiters, {})) answer(id, text);
  }

  [[nodiscard]] std::size_t bound() const {
    return options_.queue_capacity > kUnlimited - capacity_ ? kUnlimited
                                                            : capacity_ + options_.queue_capacity;
  }
  [[nodiscard]] std::size_t load() const { return weight_of(running_) + queue_.weight(); }
  [[nodiscard]] bool has_room_beside(std::size_t load, const Op& op) const {
    return op.options.weight <= bound() - std::min(load, bound()) ||
           (op.options.weight > 1 && load == 0);
  }
  [[nodiscard]] bool has_room(const Op& op) const { return has_room_beside(load(), op); }
  [[nodiscard]] bool is_held(const Op& op) const {
    return queue_.is_held(op.options.key, running_);
  }
  // Tasks that wait for their key take places in the queue, and no slots.
  [[nodiscard]] bool has_place_behind_key(const Op& op) const {
    const std::size_t taken = std::min(queue_.held_up_weight(running_), options_.queue_capacity);
    return !is_held(op) || op.options.weight <= options_.queue_capacity - taken;
  }
  [[nodiscard]] bool fits(const Op& op) const { return has_room(op) && has_place_behind_key(op); }
  [[nodiscard]] bool runs_nothing() const { return running_.empty() && in_callers_.empty(); }
  [[nodiscard]] bool is_idle() const { return runs_nothing() && queue_.empty(); }
  [[nodiscard]] std::size_t kept_workers() const {
    return std::min(options_.min_workers, capacity_);
  }

  // --- Tasks come in ---

  void call(const Op& op) {
    if (closed_) return refuse(op.id, "closed");
    if (op.options.weight > capacity_) return refuse(op.id, "too heavy");
    const auto is_before = [&](const Op& other) { return is_held(op) || !is_held(other); };
    if (fits(op) && std::none_of(blocked_.begin(), blocked_.end(), is_before)) return accept(op);
    switch (when_full(op.act)) {
      case OnFull::reject:
        return refuse(op.id, "full");
      case OnFull::caller_runs:
        return paused_ || op.options.key != 0 ? block(op) : run_in_caller(op);
      case OnFull::drop_oldest:
        if (queue_.empty() || !drop_for(op)) return refuse(op.id, "full");
        accept(op);
        return admit();  // The dropped task may have been heavier.
      case OnFull::block:
        return block(op);
    }
  }
  // Submits tasks up to the first refusal.
  void call_in_bulk(const Op& op) {
    std::size_t accepted = 0;
    for (bool goes_on = true; goes_on && accepted < op.number;) {
      const Op part{.id = op.id_of_part(accepted)};
      call(part);
      goes_on = behaviour_.answers[part.id] == "accepted";
      behaviour_.answers.erase(part.id);
      if (goes_on) ++accepted;
    }
    answer(op.id, std::to_string(accepted));
  }
  [[nodiscard]] OnFull when_full(Act act) const {
    if (act == Act::try_submit) return OnFull::reject;
    if (act == Act::submit_past || act == Act::submit_stopping) return OnFull::block;
    return options_.on_full;
  }
  void refuse(int id, const char* why) {
    ++counted_.rejected;
    answer(id, why);
  }
  void accept(const Op& op) {
    ++counted_.submitted;
    queue_.push(op);
    if (op.act != Act::run) answer(op.id, "accepted");
    grow();
  }
  void block(const Op& op) {
    if (blocked_.size() >= options_.max_blocked) return refuse(op.id, "too many waiting");
    if (op.act == Act::submit_past) return refuse(op.id, "timed out");
    blocked_.push_back(op);
  }
  void run_in_caller(const Op& op) {
    ++counted_.submitted;
    behaviour_.started.push_back(op.id);
    in_callers_.push_back(op);
  }
  // Drops the oldest task to make room; for a heavy task, drops several, if that makes enough room.
  bool drop_for(const Op& op) {
    if (op.options.weight > 1 && !has_room_beside(weight_of(running_), op)) return false;
    if (is_held(op) && op.options.weight > options_.queue_capacity) return false;
    do {
      drop(has_place_behind_key(op) ? queue_.take_oldest() : queue_.take_oldest_held_up(running_));
    } while (op.options.weight > 1 && !fits(op));
    return true;
  }
  void drop(const ModelQueue::Queued& dropped) {
    ++counted_.cancelled;
    if (!dropped.cancelled && tells(dropped.op)) answer(dropped.op.id, "dropped");
  }
  // Returns whether a caller waits for the task.
  [[nodiscard]] static bool tells(const Op& op) {
    return op.act == Act::async || op.act == Act::run;
  }
  // Acts for a worker that has found no task to start: it takes the task of the first blocked
  // caller, if that task has no options and no heavy task runs.
  void admit_from_worker() {
    if (!paused_ && queue_.startable(running_) == 0 && weight_of(running_) == running_.size() &&
        next_blocked() != blocked_.end() && !next_blocked()->options.are_set) {
      admit_next();
      start_one();
    }
    admit();
  }
  // Returns the next blocked caller. A submitter that waits for a place behind its key delays no
  // other.
  [[nodiscard]] std::deque<Op>::iterator next_blocked() {
    bool is_place_left = true;
    for (auto it = blocked_.begin(); it != blocked_.end(); ++it) {
      is_place_left = is_place_left && (!is_held(*it) || has_place_behind_key(*it));
      if (is_held(*it) && !is_place_left) continue;
      return has_room(*it) ? it : blocked_.end();
    }
    return blocked_.end();
  }
  void admit_next() {
    const auto it = next_blocked();
    const Op op = *it;
    blocked_.erase(it);
    accept(op);
  }
  void admit() {
    while (next_blocked() != blocked_.end()) admit_next();
  }

  // --- Tasks run ---

  // Returns whether a queued task can start, apart from a pause. A task that does not fit alongside
  // running tasks also delays later tasks.
  [[nodiscard]] bool can_start() const {
    const auto next = queue_.next(running_);
    return next && running_.size() < limit_.value() &&
           (running_.empty() || next->options.weight + weight_of(running_) <= capacity_);
  }
  bool start_one() {
    if (paused_ || !can_start()) return false;
    const ModelQueue::Queued next = queue_.take_next(running_);
    running_.push_back(next.op);
    admit();
    if (next.cancelled) {
      // The task's turn begins and ends like that of any other task.
      running_.pop_back();
      ++counted_.cancelled;
      go_on_after_end();
    } else {
      behaviour_.started.push_back(next.op.id);
    }
    return true;
  }
  // Acts for a worker whose task has ended, or was cancelled and is dropped in its turn. A queued
  // task has priority.
  void go_on_after_end() {
    grow();  // A task of the same key may be able to start now.
    if (!start_one()) admit_from_worker();
  }
  bool end_one() {
    const auto has_ended = [](const Op& op) { return op.course == Course::at_once; };
    const auto running = std::find_if(running_.begin(), running_.end(), has_ended);
    if (running != running_.end()) {
      count_end(*running);
      running_.erase(running);
      if (live_ > limit_.value()) retire(1);
      if (closed_ && queue_.empty()) retire(live_ - running_.size());
      // No task of a blocked caller is admitted before that, so the pool is idle for a moment.
      if (paused_ && is_idle()) answer_all(idle_waiters_, "true");
      go_on_after_end();
      return true;
    }
    const auto in_caller = std::find_if(in_callers_.begin(), in_callers_.end(), has_ended);
    if (in_caller == in_callers_.end()) return false;
    count_end(*in_caller);
    if (!tells(*in_caller)) answer(in_caller->id, "accepted");
    in_callers_.erase(in_caller);
    return true;
  }
  void count_end(const Op& op) {
    ++(op.throws ? counted_.failed : counted_.completed);
    if (tells(op)) return answer(op.id, op.throws ? "threw" : "returned");
    if (op.throws) ++behaviour_.handled;
  }
  // A task whose gate is open ends at once, whether it has started or not.
  template <class Matches>
  void open_where(Matches matches) {
    for (auto* ops : {&running_, &in_callers_}) {
      for (Op& op : *ops) {
        if (matches(op)) op.course = Course::at_once;
      }
    }
  }
  void open(int id) {
    const auto is_it = [id](const Op& op) { return op.id == id; };
    open_where(is_it);
    if (auto* queued = queue_.find(is_it)) queued->op.course = Course::at_once;
    for (Op& op : blocked_) {
      if (is_it(op)) op.course = Course::at_once;
    }
  }
  void cancel(const Op& op) {
    const auto is_it = [&](const Op& other) {
      return other.id == op.target && other.act == Act::async;
    };
    if (auto* queued = queue_.find(is_it)) {
      if (queued->cancelled) return;  // The handle's owner treats it as finished.
      queued->cancelled = true;
      answer(op.target, "dropped");
      return answer(op.id, "true");
    }
    if (std::none_of(running_.begin(), running_.end(), is_it)) return;
    open_where([&](const Op& other) { return is_it(other) && other.course == Course::stoppable; });
    answer(op.id, "false");
  }
  void stop(int id) {
    const auto it = std::find_if(blocked_.begin(), blocked_.end(), [id](const Op& op) {
      return op.id == id && op.act == Act::submit_stopping;
    });
    if (it == blocked_.end()) return;
    blocked_.erase(it);
    refuse(id, "cancelled");
    admit();  // Tasks behind a task that was too heavy may fit.
  }

  // --- Workers ---

  // Starts workers for accepted tasks, as far as the limit allows.
  void grow() {
    // The limit never falls, because no time passes in these tests.
    const std::size_t startable = queue_.startable(running_);
    while (limit_.is_too_low_for(running_.size() + startable)) limit_.raise();
    while (live_ < limit_.value() && startable > live_ - running_.size()) {
      const bool all = options_.grow.kind() == GrowPolicy::Kind::eager;
      start_workers(all ? limit_.value() : live_ + 1);
    }
  }
  void start_workers(std::size_t until_live) {
    for (; live_ < until_live; ++live_) ++counted_.started;
  }
  void retire(std::size_t count) {
    live_ -= count;
    counted_.retired += count;
  }
  void retire_surplus() {
    while (live_ > limit_.value() && live_ > running_.size()) retire(1);
  }

  // --- The pool as a whole ---

  void resume() {
    paused_ = false;
    answer_all(pause_waiters_, "false");
    grow();
  }
  void close(Act how) {
    closed_ = true;
    limit_.fit(capacity_, true);
    resume();
    for (const Op& op : std::exchange(blocked_, {})) refuse(op.id, "closed");
    if (how == Act::close_drain) return;
    while (!queue_.empty()) drop(queue_.take_oldest());
    queue_.forget_turns();
    if (how == Act::close_cancel) {
      open_where([](const Op& op) { return op.course == Course::stoppable; });
    }
  }

  const PoolOptions options_;
  std::size_t capacity_;
  ModelLimit limit_;  // Limits the workers.
  bool closed_ = false;
  bool paused_ = false;
  ModelQueue queue_;
  std::deque<Op> blocked_;
  std::vector<Op> running_;
  std::vector<Op> in_callers_;
  std::vector<int> idle_waiters_;
  std::vector<int> pause_waiters_;
  std::vector<int> joiners_;
  std::size_t live_ = 0;
  PoolStats counted_;
  Behaviour behaviour_;
};

}  // namespace weft::test
