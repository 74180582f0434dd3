// Controls whether locks record their owners for reports of deadlocks. Stores the owners of locks
// that may have several owners; sync/owner_notes.hpp records them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>

namespace weft::base {

#if defined(WEFT_MODEL)
[[nodiscard]] inline bool notes_lock_owners() noexcept { return false; }
#else
// Relaxed: if an owner does not see the new value yet, its lock has no recorded owner, or briefly
// an old one.
inline constinit detail::Atomic<bool> lock_owners_are_noted{false};

// Returns whether locks record their owners. Once the result is true, it stays true.
[[nodiscard]] inline bool notes_lock_owners() noexcept {
  return lock_owners_are_noted.load(detail::relaxed);
}
#endif

// Records the owners of locks that may have several owners at once. The table has a fixed size; if
// it is full, an owner is not recorded. Any thread may call the functions.
class SharedOwners {
 public:
  void add(const void* lock, std::uint64_t fiber) noexcept;
  // Removes one entry of the fiber for the lock; if none exists, removes all entries of the lock.
  void remove(const void* lock, std::uint64_t fiber) noexcept;
  // Returns the numbers of the owners; a plain thread has the number 0. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::uint64_t> owners_of(const void* lock);
  // Removes all entries. Must be called in the child of a fork, which has no other threads.
  void reset() noexcept;

 private:
  static constexpr std::size_t kBuckets = 1024;
  static constexpr std::size_t kPlaces = 15;
  struct Place {
    const void* lock = nullptr;
    std::uint64_t fiber = 0;
  };
  struct Bucket {
    detail::SpinLock lock;
    std::array<Place, kPlaces> places WEFT_GUARDED_BY(lock);
  };

  [[nodiscard]] Bucket& bucket_of(const void* lock) noexcept;

  std::array<Bucket, kBuckets> buckets_;
};

extern constinit SharedOwners shared_owners;

}  // namespace weft::base
