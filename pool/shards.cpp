#include "pool/shards.hpp"

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>
#include <weft/detail/slot_loan.hpp>

#include "pool/pool_core.hpp"

namespace weft::pool {

using detail::PoolItem;
using detail::relaxed;
using detail::Waiter;

namespace {

// Up to so many shards all loads are looked at; of more, two.
constexpr std::size_t kFewShards = 8;

// A number that this thread keeps. Not inlined: a fiber may come back on another thread.
[[gnu::noinline]] std::size_t number_of_thread() noexcept {
  static constinit detail::Atomic<std::size_t> threads{0};
  // Shared by the fibers of the thread, one after the other: so relaxed, here too.
  static constinit thread_local detail::Atomic<std::size_t> own{0};
  std::size_t number = own.load(relaxed);
  if (number == 0) {
    // Relaxed: only a number. Plus one, so that 0 says that there is none yet.
    number = threads.fetch_add(1, relaxed) + 1;
    own.store(number, relaxed);
  }
  return number;
}

// SplitMix64's mixing: all bits of the result depend on all of `value`.
std::uint64_t mixed(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

std::uint64_t bit_of(std::size_t shard) noexcept { return std::uint64_t{1} << shard; }

}  // namespace

Shards::Shards(const PoolOptions& options)
    : options_(options),
      hungry_(options.shards == kMost ? UINT64_MAX : bit_of(options.shards) - 1),
      capacity_(options.capacity) {
  for (std::size_t i = 0; i < options.shards; ++i) {
    PoolOptions part = options;
    part.capacity = share(options.capacity, i);
    part.queue_capacity = share(options.queue_capacity, i);
    part.min_workers = share(options.min_workers, i);
    part.prestart = part.min_workers > 0 && options.prestart;
    PoolCore* const first = i == 0 ? nullptr : cores_.front().get();
    cores_.push_back(std::make_unique<PoolCore>(std::move(part),
                                                Place{.group = this, .first = first, .number = i}));
  }
  for (std::size_t i = 0; i < turns_.size(); ++i) turns_[i].next.store(i, relaxed);
}

Shards::~Shards() = default;

std::size_t Shards::share(std::size_t whole, std::size_t shard) const noexcept {
  if (whole == kUnlimited) return whole;
  return whole / options_.shards + (shard < whole % options_.shards ? 1 : 0);
}

std::error_code Shards::start() noexcept {
  std::error_code error;
  for (auto& core : cores_) {
    if (!error) error = core->start();
  }
  return error;
}

// Goes round for each thread, so for each submitter that stays on its thread, without a word that
// threads share; and for each pool, so that submits to two pools by turns reach all shards.
// Relaxed, and not one step: two fibers that draw the same number do no harm.
std::size_t Shards::next_turn() noexcept {
  auto& turn = turns_[number_of_thread() % turns_.size()].next;
  const std::uint64_t next = turn.load(relaxed);
  turn.store(next + 1, relaxed);
  return static_cast<std::size_t>(next);
}

std::size_t Shards::first_choice() noexcept {
  const std::size_t turn = next_turn();
  const std::size_t count = cores_.size();
  if (options_.balance == Balance::round_robin) return turn % count;
  std::size_t best = turn % count;
  if (count > kFewShards) {
    const std::size_t other = mixed(turn) % count;
    return cores_[other]->load_hint() < cores_[best]->load_hint() ? other : best;
  }
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t other = (turn + i) % count;
    if (cores_[other]->load_hint() < cores_[best]->load_hint()) best = other;
  }
  return best;
}

std::error_code Shards::submit(PoolItem& item, OnFull when_full, const Until& until) {
  // Whether a task is too heavy must not depend on whose turn it is.
  const std::size_t weight = Backlog::weight_of(item);
  if (weight > 1 && weight > wanted_capacity_of(cores_.size() - 1)) return refuse(Errc::too_heavy);
  if (Backlog::has_key(item)) {
    // Tasks of one key share a shard, which orders them, and so they wait for that one alone.
    const std::size_t shard = mixed(Backlog::terms_of(item)->key.hash()) % cores_.size();
    return cores_[shard]->submit(item, when_full, until);
  }
  if (item.empty()) return Errc::empty_task;
  cores_.front()->stamp(item);
  if (Backlog::terms_of(item) != nullptr) {
    if (const std::error_code over = item.job->over_before_start()) return refuse(over);
  }
  const std::size_t first = first_choice();
  std::error_code error;
  for (;;) {
    const bool overtakes = somebody_is_in_line();
    if (!overtakes && offer(item, first, error)) return error;
    if (when_full == OnFull::block) return submit_blocking(item, until);
    if (overtakes || is_full(weight)) break;
  }
  PoolCore& core = *cores_[first];
  if (when_full == OnFull::reject) return refuse(Errc::full);
  if (when_full == OnFull::caller_runs) {
    return core.is_paused() ? submit_blocking(item, until) : core.submit(item, when_full, until);
  }
  const auto queued =
      std::find_if(cores_.begin(), cores_.end(), [](auto& other) { return other->has_queued(); });
  return (queued == cores_.end() ? core : **queued).submit(item, when_full, until);
}

// Each goes its own way: what makes a lock dear is what shards are for.
std::size_t Shards::submit_bulk(std::span<PoolItem> items) {
  std::size_t accepted = 0;
  while (accepted < items.size() && !submit(items[accepted], options_.on_full, {})) ++accepted;
  return accepted;
}

bool Shards::somebody_is_in_line() noexcept {
  if (line_is_empty_.load(relaxed)) return false;
  lock_.lock();
  const bool somebody = line_.has_claimable();  // Not counting those who have given up.
  note_line();
  lock_.unlock();
  return somebody;
}

// False if every shard was full when it was asked.
bool Shards::offer(PoolItem& item, std::size_t first, std::error_code& error) {
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    const std::size_t shard = (first + i) % cores_.size();
    PoolCore& core = *cores_[shard];
    if (!core.try_accept(item, error)) continue;
    if (!error && core.is_overloaded_hint()) feed_the_hungry(shard);
    return true;
  }
  return false;
}

std::error_code Shards::submit_blocking(PoolItem& item, const Until& until) {
  const detail::SlotLoan loan(&first());
  Waiter self;
  self.slot = &item;
  std::error_code error;
  // Relaxed: the locks of the shards, which are looked at next, order it.
  waiting_.fetch_add(1, relaxed);
  const auto leave = [&](std::error_code result) {
    waiting_.fetch_sub(1, relaxed);
    return result;
  };
  for (;;) {
    lock_.lock();
    const bool is_first = !line_.has_claimable();
    const std::uint64_t room_made = room_made_;
    lock_.unlock();
    if (is_first && offer(item, first_choice(), error)) return leave(error);
    lock_.lock();
    if (closed_ || in_line_ >= options_.max_blocked) {
      const std::error_code why = closed_ ? Errc::closed : Errc::too_many_waiting;
      lock_.unlock();
      return leave(refuse(why));
    }
    if (room_made == room_made_ && is_first == !line_.has_claimable()) break;
    lock_.unlock();
  }
  ++in_line_;
  line_is_empty_.store(false, relaxed);
  const auto* terms = Backlog::terms_of(item);
  const Until limit = terms == nullptr ? until : until.but_before(terms->deadline);
  const auto winner =
      detail::wait_in_until(line_, lock_, self, detail::WaitReason::pool_submit, limit);
  // The pool may be gone by now if it was closed, which has counted this party out.
  if (winner == detail::Claim::kNotifier) {
    return self.granted ? std::error_code() : make_error_code(Errc::closed);
  }
  lock_.lock();
  --in_line_;
  note_line();
  lock_.unlock();
  // Those behind one that was too heavy may fit.
  for (auto& core : cores_) core->match_up_now();
  return leave(refuse(winner == detail::Claim::kStop ? Errc::cancelled : Errc::timed_out));
}

std::error_code Shards::refuse(std::error_code why) noexcept {
  first().count_refusal();
  return why;
}

// Whether there is a moment at which no shard would accept a task of that weight.
bool Shards::is_full(std::size_t weight) noexcept {
  lock_all();
  const bool full = std::none_of(cores_.begin(), cores_.end(),
                                 [weight](auto& core) { return core->would_accept(weight); });
  unlock_all();
  return full;
}

void Shards::lock_all() noexcept {
  for (auto& core : cores_) core->lock();
}
void Shards::unlock_all() noexcept {
  for (auto& core : cores_) core->unlock();
}

void Shards::feed_the_hungry(std::size_t loaded) noexcept {
  detail::full_fence();  // [hungry]
  // Relaxed: the fence orders it, and who clears a bit looks under the lock of the shard.
  std::uint64_t hungry = hungry_.load(relaxed) & ~bit_of(loaded);
  for (; hungry != 0; hungry &= hungry - 1) {
    const auto shard = static_cast<std::size_t>(std::countr_zero(hungry));
    hungry_.fetch_and(~bit_of(shard), relaxed);
    if (cores_[shard]->look_around()) return;
  }
}

bool Shards::sees_work_for(std::size_t shard) noexcept {
  // Relaxed: the fence orders it.
  if ((hungry_.load(relaxed) & bit_of(shard)) == 0) hungry_.fetch_or(bit_of(shard), relaxed);
  detail::full_fence();  // [hungry]
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    if (i != shard && cores_[i]->is_overloaded_hint()) return true;
  }
  return false;
}

bool Shards::find_work(std::size_t shard) noexcept {
  if (!sees_work_for(shard)) return false;
  for (std::size_t i = 1; i < cores_.size(); ++i) {
    PoolCore& other = *cores_[(shard + i) % cores_.size()];
    if (other.is_overloaded_hint() && cores_[shard]->take_from(other)) return true;
  }
  return false;
}

// After a change for all shards: some may have free slots now that nobody knows of.
void Shards::even_out() noexcept {
  // Relaxed: a hint; the fence in feed_the_hungry orders it.
  hungry_.store(cores_.size() == kMost ? UINT64_MAX : bit_of(cores_.size()) - 1, relaxed);
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    if (cores_[i]->is_overloaded_hint()) feed_the_hungry(i);
  }
}

}  // namespace weft::pool
