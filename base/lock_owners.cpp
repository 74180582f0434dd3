#include "base/lock_owners.hpp"

#include <algorithm>

namespace weft::base {

constinit SharedOwners shared_owners;

SharedOwners::Bucket& SharedOwners::bucket_of(const void* lock) noexcept {
  // Objects are often whole cache lines apart, so the hash uses all bits of the address.
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  constexpr unsigned kUpperBits = 64 - 10;
  static_assert(std::uint64_t{1} << (64 - kUpperBits) == kBuckets);
  return buckets_[(reinterpret_cast<std::uintptr_t>(lock) * kOdd) >> kUpperBits];
}

void SharedOwners::add(const void* lock, std::uint64_t fiber) noexcept {
  Bucket& bucket = bucket_of(lock);
  const detail::SpinGuard guard(bucket.lock);
  const auto free = std::ranges::find(bucket.places, nullptr, &Place::lock);
  if (free != bucket.places.end()) *free = {lock, fiber};
}

void SharedOwners::remove(const void* lock, std::uint64_t fiber) noexcept {
  Bucket& bucket = bucket_of(lock);
  const detail::SpinGuard guard(bucket.lock);
  for (Place& place : bucket.places) {
    if (place.lock != lock || place.fiber != fiber) continue;
    place = {};
    return;
  }
  for (Place& place : bucket.places) {
    if (place.lock == lock) place = {};
  }
}

std::vector<std::uint64_t> SharedOwners::owners_of(const void* lock) {
  std::vector<std::uint64_t> owners;
  owners.reserve(kPlaces);  // Allocates before the spin lock is taken.
  Bucket& bucket = bucket_of(lock);
  const detail::SpinGuard guard(bucket.lock);
  for (const Place& place : bucket.places) {
    if (place.lock == lock) owners.push_back(place.fiber);
  }
  return owners;
}

// Excluded from thread-safety analysis, because the thread that held a lock does not exist in this
// process.
void SharedOwners::reset() noexcept WEFT_NOT_ANALYZED {
  for (Bucket& bucket : buckets_) {
    bucket.places.fill({});
    bucket.lock.unlock();
  }
}

}  // namespace weft::base
