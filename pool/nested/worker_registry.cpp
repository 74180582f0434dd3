#include "pool/nested/worker_registry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waist.hpp>

#include "pool/queue/task_queue.hpp"

namespace weft::pool {
namespace {

// The number by which a fiber, or thread, is known.
const void* key_of(const detail::Waker& caller) noexcept {
  if (caller.is_thread()) return caller.thread();
  return caller.fiber();
}

// A hash table of all workers of the process, keyed by fiber. It never grows, so that looking up
// needs no more than one short lock; with a million workers a list has 250 entries, which only a
// call that is about to park walks through.
struct Bucket {
  detail::SpinLock lock;
  Registration* first = nullptr;
};
constexpr unsigned kBucketBits = 12;
constinit std::array<Bucket, std::size_t{1} << kBucketBits> buckets{};

Bucket& bucket_of(const void* fiber) noexcept {
  // Fibonacci hashing: the top bits of the product depend on all bits of the address.
  const std::uint64_t product = reinterpret_cast<std::uintptr_t>(fiber) * 0x9E3779B97F4A7C15u;
  return buckets[product >> (64 - kBucketBits)];
}

}  // namespace

Registration::Registration(PoolCore& core, const detail::PoolItem& running, Slot slot,
                           Registration* outer) noexcept
    : fiber_(key_of(detail::current())),
      core_(core),
      running_(running),
      slot_(slot),
      outer_(outer) {
  Bucket& bucket = bucket_of(fiber_);
  bucket.lock.lock();
  next_ = bucket.first;
  if (next_ != nullptr) next_->previous_ = this;
  bucket.first = this;
  bucket.lock.unlock();
}

Registration::~Registration() {
  Bucket& bucket = bucket_of(fiber_);
  bucket.lock.lock();
  (previous_ == nullptr ? bucket.first : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  bucket.lock.unlock();
}

std::size_t Registration::weight() const noexcept {
  return weight_of_drain_ != 0 ? weight_of_drain_ : TaskQueue::weight_of(running_);
}

Registration* Registration::of_caller() noexcept {
  const void* const caller = key_of(detail::current());
  Bucket& bucket = bucket_of(caller);
  bucket.lock.lock();
  Registration* entry = bucket.first;  // The newest ones come first.
  while (entry != nullptr && entry->fiber_ != caller) entry = entry->next_;
  bucket.lock.unlock();
  return entry;
}

bool called_from_worker_of(const PoolCore* core) noexcept {
  const Registration* entry = Registration::of_caller();
  while (entry != nullptr && &entry->core() != core) entry = entry->outer();
  return entry != nullptr;
}

}  // namespace weft::pool
