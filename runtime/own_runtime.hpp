// The announcement that a runtime ends.
#pragma once

namespace weft::runtime {

// The thread that destroys a runtime calls it: makes the call that was passed to
// detail::on_runtime_end().
void announce_end() noexcept;

}  // namespace weft::runtime
