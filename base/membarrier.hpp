// Executes a memory barrier on all threads of the process; only the caller spends time for it.
#pragma once

namespace weft::base {

// Registers the process for barrier_all_threads(). Returns false if the system does not support the
// barrier, because the kernel is old or a sandbox refuses the call. The call is cheap and may be
// repeated.
[[nodiscard]] bool prepare_barriers() noexcept;
// Makes every thread of the process execute a full barrier before the return. Returns false if the
// system refused. The call takes up to some tens of microseconds, so use it only for rare events.
[[nodiscard]] bool barrier_all_threads() noexcept;

}  // namespace weft::base
