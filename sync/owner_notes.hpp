// Notes of the owners of locks, for reports of deadlocks.
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
// Notes have the calling fiber's number; 0 is that of plain threads.
[[nodiscard]] inline std::uint64_t number_for_notes() noexcept { return this_fiber::id(); }
// A lock that may have several owners has no room for them: it notes the caller elsewhere, unless
// there are too many. Only an owner calls it.
inline void note_owner_of(const void* lock) noexcept {
  base::shared_owners.add(lock, number_for_notes());
}
// An owner calls it before it ceases to be one; a caller that is not noted removes the notes of
// all.
inline void forget_owner_of(const void* lock) noexcept {
  base::shared_owners.remove(lock, number_for_notes());
}
#endif

}  // namespace weft::sync
