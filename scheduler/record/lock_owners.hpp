// Whether locks note their owners.
#pragma once

#include <weft/detail/atomic.hpp>

namespace weft::scheduler {

// Relaxed: a lock whose owner does not see it yet has no note, or a former one for a moment.
inline constinit detail::Atomic<bool> lock_owners_are_noted{false};

}  // namespace weft::scheduler
