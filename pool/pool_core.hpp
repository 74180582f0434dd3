// What a FiberPool is made of; README.md tells how it works and why so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/termed_job.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/pool.hpp>

#include "pool/backlog.hpp"
#include "pool/blocked_submitters.hpp"
#include "pool/guest.hpp"
#include "pool/idle_stack.hpp"
#include "pool/timing_book.hpp"

namespace weft::pool {

// The state of a pool and all that happens to it. One lock guards everything below it; it is
// never held across an allocation, user code, or a wake.
//
// A slot is the right to run one task. A worker that lives holds one, and is in one of three
// conditions: running a task; idle, in idle_; or awaited, that is started or woken and not yet
// looking for a task. A fourth, lent, holds none: its task waits on its own pool.
// Invariants, under lock_
//   I1  live_ = running_ + idle_.size() + waking_ (+ the worker that holds lock_), and
//       live_ <= limit_ <= capacity_, except while tasks run that were started under a larger
//       limit, or had lent their slot.
//   I2  load_ is the weight of all that runs or is queued, and who accepts an item keeps it within
//       bound_.
//   I3  If an item can start, a worker is awaited, or no worker is idle and every slot is in use:
//       then those who run look at the queue after their task. While the pool is paused, it is
//       enough that a worker lives. Nothing is ever stranded.
//   I4  Parties are blocked only while the first of them does not fit under I2 or I9, or until the
//       next finished task if memory ran out; and then each pop makes room in queue_. Nobody blocks
//       once closed_ is set.
//   I8  A task of weight w counts for w, in load_ from when it is accepted, and among the running
//       from when it starts; it starts when it fits into capacity_, or when nothing runs.
//   I9  Tasks that others of their keys hold up take places of the queue, and none of a slot: so
//       their holders find a slot, and a place for what they wait for.
//   I5  Lenders wait in returning_ only while they cannot have a slot under I2.
//   I6  present_ counts the fibers of the pool, from before they are spawned to their last
//       access to this object.
//   I7  No item begins to run while paused_ is set. A closed pool is not paused.
class PoolCore {
 public:
  // `host`: of a sub-pool.
  PoolCore(PoolOptions options, PoolCore* host);
  ~PoolCore();
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;

  // pool_core.cpp: tasks come in.
  [[nodiscard]] std::error_code submit(detail::PoolItem& item, OnFull when_full,
                                       const Until& until);
  // bulk.cpp: of items without terms. Returns how many have been accepted, which are the first.
  [[nodiscard]] std::size_t submit_bulk(std::span<detail::PoolItem> items);
  [[nodiscard]] const PoolOptions& options() const noexcept { return options_; }
  // The outermost of the hosts, or this pool: the same for all whose tasks lend to each other.
  [[nodiscard]] PoolCore& family() const noexcept { return family_; }
  [[nodiscard]] bool lends() const noexcept { return options_.lend_when_blocked; }

  // terms.cpp: a job for a submit with options. Throws std::bad_alloc.
  [[nodiscard]] detail::TermedTask& take_spare_task();

  // lifecycle.cpp: the pool as a whole.
  // Starts what is to be there before the first task.
  [[nodiscard]] std::error_code start() noexcept;
  void close(Close mode) noexcept;
  // False if it was open.
  [[nodiscard]] bool reopen();
  void resize(std::size_t capacity) noexcept;
  [[nodiscard]] bool wait_idle_until(const Until& until);
  [[nodiscard]] bool join_until(const Until& until);
  [[nodiscard]] std::size_t capacity() noexcept;
  [[nodiscard]] std::size_t available() noexcept;
  [[nodiscard]] bool is_closed() noexcept;
  [[nodiscard]] std::stop_token stop_token() noexcept;
  [[nodiscard]] PoolStats stats() noexcept;
  // counting.cpp
  [[nodiscard]] PoolTimings timings() noexcept;
  [[nodiscard]] bool wait_for_completed(std::uint64_t count, const Until& until);

  // pausing.cpp
  void pause() noexcept;
  void resume() noexcept;
  [[nodiscard]] bool is_paused() noexcept;
  [[nodiscard]] bool wait_paused_until(const Until& until);

  // lending.cpp: by a worker of this pool, around a wait of its task; see detail::SlotLoan.
  void lend_slots(std::size_t weight) noexcept;
  void reclaim_slots(std::size_t weight) noexcept;

  // visiting.cpp: by a Visit to this pool.
  void count_visitor() noexcept;
  void visit(Arrival arrival, detail::PoolJob*& finished,
             detail::PoolJob::Outcome& outcome) noexcept;
  void miss_visit(Arrival arrival) noexcept;
  void leave() noexcept;  // The last access of a worker, a reaper or a visit to the pool.
  void leave_silently(WakeChain& wakes) noexcept;  // The caller wakes those whom it tells.

 private:
  // How many queued items one awaited worker stands for. It runs them one after the other if they
  // are short, and calls more workers as it goes if they are not: see README.md.
  static constexpr std::size_t kItemsPerWake = 16;
  // With so many awaited, the next worker is started by one that arrives: what a flood of tasks
  // needs shows only when the first of them run. See README.md.
  static constexpr std::size_t kStartsAhead = 16;

  enum class Verdict : std::uint8_t { accepted, refused, full };

  // pool_core.cpp. Requires lock_. Full: lock_ is still held. Else it is released, and `error`
  // tells why the item was refused.
  [[nodiscard]] Verdict accept_if_room(detail::PoolItem& item, std::error_code& error) noexcept;
  // Without lock_.
  [[nodiscard]] std::error_code submit_blocking(detail::PoolItem& item, const Until& until);
  // Requires lock_, and releases it.
  [[nodiscard]] std::error_code submit_dropping(detail::PoolItem& item);
  void run_in_caller(detail::PoolItem& item) noexcept;
  // bulk.cpp
  [[nodiscard]] std::size_t push_some(std::span<detail::PoolItem> items) noexcept;
  [[nodiscard]] bool needs_only_push(const detail::PoolItem& item) const noexcept;
  [[nodiscard]] std::error_code refuse(std::error_code why) noexcept;
  // Requires lock_; releases it meanwhile. Makes room for `item`. False when there is no memory.
  [[nodiscard]] bool grow_queue(const detail::PoolItem& item) noexcept;

  // All of these require lock_.
  [[nodiscard]] bool has_room(std::size_t weight = 1) const noexcept {
    return has_room_beside(load_, weight);
  }
  [[nodiscard]] bool has_room_beside(std::size_t load, std::size_t weight) const noexcept {
    return load + weight <= bound_ || (weight > 1 && load == 0);
  }
  // A place in the queue behind its key, for an item that is held up.
  [[nodiscard]] bool has_place_behind_key(std::size_t weight) const noexcept {
    const std::size_t taken = std::min(queue_.held_up_weight(), options_.queue_capacity);
    return weight <= options_.queue_capacity - taken;
  }
  // Whether a newcomer cannot be accepted now: there is no room, or somebody was first.
  [[nodiscard]] bool must_wait(const detail::PoolItem& item, std::size_t weight) const noexcept {
    if (!has_room(weight) || !blocked_.nobody_waits_for_room()) return true;
    if (item.job == nullptr || !queue_.would_be_held_up(item)) [[likely]]
      return false;
    return !blocked_.empty() || !has_place_behind_key(weight);
  }
  // An item of that weight is accepted; the item goes into the queue.
  void book_weight(std::size_t weight) noexcept {
    load_ += weight;
    ++submitted_;
  }
  void book(detail::PoolItem& item) noexcept {
    book_weight(Backlog::weight_of(item));
    queue_.push(std::move(item));
  }
  // Whether the next item, which can start, fits beside those that run.
  [[nodiscard]] bool next_fits() const noexcept {
    if (reserved_ > 0) [[unlikely]]
      return false;
    const std::size_t weight = queue_.next_weight();
    if (weight == 1 && extra_running_ == 0) [[likely]]
      return true;  // The worker that takes it has a slot.
    return running_ == 0 || running_ + extra_running_ + weight <= capacity_;
  }
  [[nodiscard]] bool is_still() const noexcept { return running_ + lent_ + in_callers_ == 0; }
  [[nodiscard]] bool is_quiet() const noexcept { return is_still() && queue_.empty(); }
  [[nodiscard]] bool is_gone() const noexcept;
  // Whether, with `items` queued, another worker is to be started, or the limit to be raised.
  [[nodiscard]] bool must_grow(std::size_t items) const noexcept {
    return (live_ < limit_ && items > idle_.size() + waking_ &&
            (waking_ < kStartsAhead || host_ != nullptr)) ||
           running_ + items > raise_at_;
  }
  [[nodiscard]] std::size_t kept_workers() const noexcept;
  // How many tasks are not queued any more, counting those that were not queued at all.
  [[nodiscard]] std::uint64_t left_queue() const noexcept { return submitted_ - queue_.size(); }
  void set_capacity(std::size_t capacity) noexcept;
  [[nodiscard]] Submitter* next_blocked() noexcept;
  void release_key(const TaskKey& key) noexcept {
    if (!blocked_.empty() && key.is_set() && !queue_.is_held(key)) blocked_.release_key(key);
  }
  void admit_blocked(WakeChain& wakes) noexcept;
  [[nodiscard]] bool admit_one(detail::PoolItem* instead_of_queue, WakeChain& wakes) noexcept;
  // Whether too few workers are awaited for what is queued, and another could be called.
  [[nodiscard]] bool queue_wants_worker() const noexcept {
    return !idle_.empty() && waking_ * kItemsPerWake < queue_.startable() && !paused_ &&
           next_fits();
  }
  [[nodiscard]] Worker& call_idle() noexcept;
  void tell_if_quiet(WakeChain& wakes) noexcept;
  void tell_if_gone(WakeChain& wakes) noexcept;

  // counting.cpp. Require lock_.
  void count(detail::PoolJob::Outcome outcome, const Lap& lap) noexcept;
  enum class Which : std::uint8_t { of_all, held_up };
  void drop_oldest(detail::PoolItem& dropped, Which which) noexcept;

  // terms.cpp. Require lock_. A task with terms begins to run.
  void begin_terms(const detail::PoolItem& item) noexcept;
  // A task has ended, whose slot is still counted, and a job is settled. end_job() releases lock_
  // meanwhile if nobody else knows of the job: its end calls what is the user's. Returns its
  // weight.
  void end_task(Worker& self, detail::PoolItem& item) noexcept {
    std::size_t weight = 1;
    if (item.job != nullptr) [[unlikely]]
      weight = end_job(*std::exchange(item.job, nullptr), self);
    self.freed_more = weight > 1;
    count(self.outcome, self.lap);
    free_slots(weight);
  }
  [[nodiscard]] std::size_t end_job(detail::PoolJob& job, Worker& self) noexcept;
  // Of a job with terms. True if the pool keeps it for another task.
  [[nodiscard]] bool end_terms(detail::PoolTerms& terms) noexcept;
  void destroy_last(detail::PoolJob& job, const Worker& self) noexcept;
  void free_slots(std::size_t weight) noexcept {
    --running_;
    extra_running_ -= weight - 1;
    load_ -= weight;
  }
  [[nodiscard]] std::uint64_t ended() const noexcept { return completed_ + failed_; }
  void tell_if_counted(WakeChain& wakes) noexcept {
    if (ended() >= awaited_count_) [[unlikely]]
      tell_counted(wakes);
  }
  void tell_counted(WakeChain& wakes) noexcept;

  // pausing.cpp. Require lock_.
  void end_pause(WakeChain& wakes) noexcept;
  void end_pause_and_match_up() noexcept;  // Releases it.
  void tell_if_still(WakeChain& wakes) noexcept;
  [[nodiscard]] bool must_admit_without_start() const noexcept;

  // Notes when a task was submitted, if that is measured. Without lock_.
  void stamp(detail::PoolItem& item) const noexcept;

  // lending.cpp. Require lock_.
  [[nodiscard]] bool slots_for_lender(std::size_t weight) const noexcept;
  void take_back_slots(std::size_t weight) noexcept;
  void reserve(std::size_t places) noexcept;
  [[nodiscard]] std::size_t unreserved_bound() const noexcept;
  void return_slots(WakeChain& wakes) noexcept;

  // visiting.cpp, of a host. All without lock_, but the last two.
  enum class Turn : std::uint8_t { first, later };
  [[nodiscard]] std::error_code accept_visit(PoolCore& guest, OnFull when_full) noexcept;
  [[nodiscard]] std::error_code stand_in_line(PoolCore& guest) noexcept;
  void close_guests_and_lock(Close mode) noexcept;
  [[nodiscard]] detail::WaitList take_guests_in_line(Close mode) noexcept;
  [[nodiscard]] bool spares_slot(Turn turn) const noexcept;
  // Of a guest; the rest requires lock_.
  void move_in();
  void move_out() noexcept;
  void lock_with_hosts() noexcept;
  void unlock_with_hosts() noexcept;
  [[nodiscard]] bool begin_visit(Arrival arrival) noexcept;
  [[nodiscard]] bool next_in_visit(Worker& self, detail::PoolItem& item, Turn turn,
                                   detail::PoolJob*& finished) noexcept;
  [[nodiscard]] detail::PoolJob* end_in_visit(Worker& self, detail::PoolItem& item) noexcept;
  [[nodiscard]] std::error_code call_visit(OnFull when_full) noexcept;
  [[nodiscard]] std::error_code ask_for_visit(OnFull when_full) noexcept;
  void forget_awaited() noexcept;
  [[nodiscard]] bool lacks_worker() noexcept;
  [[nodiscard]] bool first_blocked_fits() noexcept;
  void end_family() noexcept;
  // Whether one more item may wait until the host has room.
  [[nodiscard]] bool may_wait_for_host() const noexcept;
  [[nodiscard]] bool has_place_at_host() const noexcept;
  [[nodiscard]] bool has_accepted() noexcept;
  [[nodiscard]] bool must_stand_in_line(std::size_t weight) const noexcept;

  // worker.cpp
  void work() noexcept;
  [[nodiscard]] bool next_item(Worker& self, detail::PoolItem& item) noexcept;
  [[nodiscard]] bool take_item(detail::PoolItem& item, int calls, WakeChain& wakes) noexcept;
  void set_out(Worker& self, WakeChain& wakes) noexcept;
  [[nodiscard]] bool idle(Worker& self) noexcept;
  [[nodiscard]] bool arrive(Worker& self) noexcept;
  void step_out(Worker& self) noexcept;
  void give_up_slot(WakeChain& wakes) noexcept;
  void admit_after_leaving(WakeChain& wakes) noexcept;  // Releases lock_.
  [[nodiscard]] detail::PoolJob::Outcome execute(detail::PoolItem& item, std::uint64_t number,
                                                 Lap& lap) noexcept;
  [[nodiscard]] detail::PoolJob::Outcome run(detail::PoolItem& item, std::uint64_t number) noexcept;
  [[nodiscard]] detail::PoolJob::Outcome execute_job(detail::PoolJob& job,
                                                     std::uint64_t number) noexcept;
  // Requires lock_; releases it meanwhile.
  [[nodiscard]] std::error_code start_worker() noexcept;
  [[nodiscard]] std::error_code start_worker_for(const detail::PoolItem& item) noexcept;
  void run_stranded_items() noexcept;

  // reports.cpp. Without lock_.
  void report(const std::exception_ptr& exception, const TaskInfo& task) noexcept;
  // What left a job whose handle was dropped.
  void report_lost(detail::PoolJob& job, const Worker& self) noexcept;
  void log(std::string_view event, const std::exception_ptr& exception) noexcept;

  // growing.cpp. All but keep_limit() require lock_.
  [[nodiscard]] std::size_t least_limit() const noexcept;
  void set_limit(std::size_t limit) noexcept;
  void raise_limit() noexcept;
  void lower_limit() noexcept;
  [[nodiscard]] std::error_code grow(std::size_t items) noexcept;
  [[nodiscard]] std::error_code start_keeper() noexcept;
  void keep_limit() noexcept;

  // ticks.cpp
  [[nodiscard]] std::error_code start_ticker() noexcept;
  void tick() noexcept;
  void call_on_tick() noexcept;
  // Requires lock_.
  [[nodiscard]] bool only_ticker_is_left() const noexcept;

  // lifecycle.cpp
  [[nodiscard]] std::error_code start_kept_workers() noexcept;
  [[nodiscard]] std::error_code reserve_queue() noexcept;
  // Requires lock_, and releases it.
  void match_up() noexcept;
  // Without lock_.
  void match_up_now() noexcept {
    lock_.lock();
    match_up();
  }
  void refuse_own_tasks() const;
  [[noreturn]] static void refuse_wait(const char* why);

  // reaper.cpp
  [[nodiscard]] bool reaper_is_due() const noexcept;
  void announce_reaper() noexcept;
  [[nodiscard]] bool start_reaper() noexcept;
  void reap() noexcept;
  void retire_stale() noexcept;
  [[nodiscard]] bool coldest_is_stale() const noexcept;
  void retire_coldest(WakeChain& wakes) noexcept;
  void retire_awaited() noexcept;
  void retire_all_without_task(WakeChain& wakes) noexcept;
  void retire_surplus(WakeChain& wakes) noexcept;

  const PoolOptions options_;
  const std::unique_ptr<TimingBook> timings_;  // Null: no clock is read for a task.
  PoolCore* const host_;                       // Null, unless it is a sub-pool.
  PoolCore& family_;
  Guest* guest_ = nullptr;  // What this pool is to its host.

  // What each task changes, side by side: two processors that share a pool pass it to and fro.
  alignas(64) detail::SpinLock lock_;
  std::size_t running_ = 0;
  std::size_t load_ = 0;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  Backlog queue_;
  bool closed_ = false;
  bool paused_ = false;
  bool cancelled_all_ = false;  // Stop has been, or is being, requested of stop_source_.
  bool reaper_alive_ = false;
  bool ticker_alive_ = false;
  bool keeper_alive_ = false;
  std::size_t capacity_ = 0;
  std::size_t bound_ = 0;            // capacity_ + queue_capacity, saturated, without reserved_.
  std::size_t reserved_ = 0;         // Slots that heavy tasks wait to have back.
  std::size_t limit_ = 0;            // Workers that may live: capacity_, unless the load says less.
  std::size_t raise_at_ = SIZE_MAX;  // A load above it is too high for limit_.
  std::size_t live_ = 0;
  std::size_t waking_ = 0;
  std::size_t doomed_ = 0;  // Awaited workers whose slot was taken: the next so many leave.
  std::size_t lent_ = 0;
  std::size_t extra_running_ = 0;  // Slots beyond one of those that run.
  std::uint64_t failed_ = 0;
  std::uint64_t awaited_count_ = UINT64_MAX;  // Nobody in count_waiters_ waits for less.
  IdleStack idle_;
  BlockedSubmitters blocked_;
  detail::WaitList returning_;  // Lenders that want a slot back.
  std::size_t blocked_count_ = 0;
  std::size_t in_callers_ = 0;
  std::size_t present_ = 0;
  std::uint64_t epoch_ = 0;  // Advanced by the reaper every idle_timeout.
  std::uint64_t cancelled_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t retired_ = 0;
  detail::PoolTerms* spares_ = nullptr;  // Of jobs for later submits with options.
  std::size_t spare_count_ = 0;
  std::stop_source stop_source_;  // Replaced when the pool is opened after a cancel.
  detail::WaitList quiet_waiters_;
  detail::WaitList still_waiters_;  // Until no task runs, while paused.
  detail::WaitList joiners_;
  detail::WaitList count_waiters_;
  detail::WaitList reaper_bed_;   // Where the reaper sleeps.
  detail::WaitList keeper_bed_;   // Where the keeper of limit_ sleeps.
  detail::WaitList ticker_bed_;   // Where the caller of on_tick sleeps.
  std::uint64_t ticker_ = 0;      // this_fiber::id() of that one; 0: there is none, or not yet.
  Guest* first_guest_ = nullptr;  // The sub-pools.
  bool closing_ = false;          // From before the sub-pools are closed.
  std::size_t in_line_ = 0;       // Visits for which a sub-pool had to stand in its host's line.
};

}  // namespace weft::pool
