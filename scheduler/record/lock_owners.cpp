#include "scheduler/record/lock_owners.hpp"

#include <weft/detail/waist.hpp>

namespace weft::detail {

bool notes_lock_owners() noexcept { return scheduler::lock_owners_are_noted.load(relaxed); }

}  // namespace weft::detail
