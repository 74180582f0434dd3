// Questions about the runtime of the calling fiber.
#pragma once

namespace weft::detail {

// Returns how many fibers can run at once in the runtime to which the caller would spawn; 1 without
// a runtime.
[[nodiscard]] unsigned concurrency() noexcept;

// Returns whether the caller's runtime is being destroyed, which waits for its last fibers. Returns
// false on a plain thread.
[[nodiscard]] bool runtime_is_ending() noexcept;
// Registers `call`, which each thread makes when it begins to destroy a runtime, once
// runtime_is_ending() is true there, to notify fibers that wait for more work. A process has one
// such call: a later one replaces it. It must not park.
void on_runtime_end(void (*call)() noexcept) noexcept;

}  // namespace weft::detail
