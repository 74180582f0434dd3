// Helps tests that rely on how a single worker runs its fibers.
#pragma once

namespace weft::test {

// Returns whether a single worker runs its fibers in the documented order, and they can share data
// without a lock. If not, prints that the test is skipped, and why.
[[nodiscard]] bool one_worker_keeps_order();

}  // namespace weft::test
