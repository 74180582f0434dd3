// Answers queries about the runtime of the calling fiber.
#pragma once

namespace weft::detail {

// Returns how many fibers can run at once in the runtime into which the caller would spawn; 1 if
// there is no runtime.
[[nodiscard]] unsigned concurrency() noexcept;

// Returns whether the destructor of the caller's runtime has begun and now waits for the last
// fibers. Returns false on a plain thread.
[[nodiscard]] bool runtime_is_ending() noexcept;
// Registers `call`, which notifies fibers that wait for more work. As soon as runtime_is_ending()
// is true in a runtime, the thread that destroys the runtime calls `call`. A process keeps only one
// registered call, so a later registration replaces the earlier one. `call` must not park.
void on_runtime_end(void (*call)() noexcept) noexcept;

}  // namespace weft::detail
