// Records the owners of locks, for deadlock reports.
#pragma once

#include <cstdint>
#include <weft/this_fiber.hpp>

#include "base/lock_owners.hpp"

namespace weft::sync {

#if defined(WEFT_MODEL)
[[nodiscard]] inline std::uint64_t number_for_notes() noexcept { return 0; }
inline void note_owner_of(const void* /*lock*/) noexcept {}
inline void forget_owner_of(const void* /*lock*/) noexcept {}
#else
// A note has the calling fiber's number; plain threads have the number 0.
[[nodiscard]] inline std::uint64_t number_for_notes() noexcept { return this_fiber::id(); }
// A lock that may have several owners has no room for their notes, so base::shared_owners notes the
// caller, unless there are too many owners. Only an owner calls it.
inline void note_owner_of(const void* lock) noexcept {
  base::shared_owners.add(lock, number_for_notes());
}
// An owner calls it before it releases the lock; a caller without a note removes the notes of all
// owners.
inline void forget_owner_of(const void* lock) noexcept {
  base::shared_owners.remove(lock, number_for_notes());
}
#endif

}  // namespace weft::sync
