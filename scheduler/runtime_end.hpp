// The announcement that a runtime ends.
#pragma once

namespace weft::scheduler {

// By the thread that destroys a runtime: makes the call that detail::on_runtime_end() was given.
void announce_end() noexcept;

}  // namespace weft::scheduler
