// Tests that count on how a single worker runs its fibers.
#pragma once

namespace weft::test {

// Whether the fibers of a single worker run in the order of its rules, and share data without a
// lock. Where they do not, it says that the test is skipped, and why.
[[nodiscard]] bool one_worker_keeps_order();

}  // namespace weft::test
