// A memory barrier on all threads of the process, for which only the caller pays.
#pragma once

namespace weft::base {

// Announces that barrier_all_threads() will be called. Returns false where the system does not
// offer it: an old kernel, or a sandbox that refuses it. The call is cheap and may be repeated.
[[nodiscard]] bool prepare_barriers() noexcept;
// When it returns, every thread of the process has executed a full barrier since the call. Returns
// false if the system refused. It takes microseconds to tens of them, so it is for rare events.
[[nodiscard]] bool barrier_all_threads() noexcept;

}  // namespace weft::base
