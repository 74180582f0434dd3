// A memory barrier on all threads of the process, for which only the caller pays.
#pragma once

namespace weft::base {

// Announces that barrier_all_threads() will be called. Returns false if the system does not support
// it: the kernel is old, or a sandbox refuses the call. The call is cheap and may be repeated.
[[nodiscard]] bool prepare_barriers() noexcept;
// When it returns, every thread of the process has executed a full barrier since the call. Returns
// false if the system refused. It takes up to some tens of microseconds, so use it for rare events
// only.
[[nodiscard]] bool barrier_all_threads() noexcept;

}  // namespace weft::base
