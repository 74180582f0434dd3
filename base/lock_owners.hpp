// Decides whether locks note their owners for reports of deadlocks, and keeps the notes of locks
// that may have several owners. sync/owner_notes.hpp makes the notes.
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
// Relaxed: if an owner does not see the new value yet, its lock has no note, or briefly a former
// note.
inline constinit detail::Atomic<bool> lock_owners_are_noted{false};

// Once it is true, it stays true.
[[nodiscard]] inline bool notes_lock_owners() noexcept {
  return lock_owners_are_noted.load(detail::relaxed);
}
#endif

// The owners of locks that may have several owners at once. A table of fixed size: an owner that
// finds no place has no note. Any thread may call.
class SharedOwners {
 public:
  void add(const void* lock, std::uint64_t fiber) noexcept;
  // Removes one note of the fiber; if the fiber has no note, removes all notes of the lock.
  void remove(const void* lock, std::uint64_t fiber) noexcept;
  // Returns the numbers of the owners, 0 for a plain thread. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::uint64_t> owners_of(const void* lock);
  // Call it in the child of a fork, which may have copied locks that were held.
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
