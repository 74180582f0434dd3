// Announces that a runtime ends.
#pragma once

namespace weft::runtime {

// Makes the call that was passed to detail::on_runtime_end(). The thread that destroys a runtime
// calls it.
void announce_end() noexcept;

}  // namespace weft::runtime
