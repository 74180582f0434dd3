// A memory barrier on all threads of the process, paid for by the one that asks.
#pragma once

namespace weft::base {

// Announces that barrier_all_threads() will be called. False where the system has no such thing:
// an old kernel, or a sandbox that refuses it. Cheap, and may be repeated.
[[nodiscard]] bool prepare_barriers() noexcept;
// When it returns, every thread of the process has executed a full barrier since the call. Returns
// false if the system has refused. Microseconds to tens of them: for what happens rarely.
[[nodiscard]] bool barrier_all_threads() noexcept;

}  // namespace weft::base
