// Helps tests that rely on how a single worker runs its fibers.
#pragma once

namespace weft::test {

// Returns whether the fibers of a single worker run in the order of its rules, and can share data
// without a lock. Otherwise prints that the test is skipped, and why.
[[nodiscard]] bool one_worker_keeps_order();

}  // namespace weft::test
