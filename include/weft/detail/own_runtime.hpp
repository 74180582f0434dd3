// Queries about the runtime of the calling fiber.
#pragma once

namespace weft::detail {

// Returns how many fibers can run at once in the runtime to which the caller would spawn; 1 without
// a runtime.
[[nodiscard]] unsigned concurrency() noexcept;

// Returns whether the destructor of the caller's runtime runs; it waits for the last fibers.
// Returns false on a plain thread.
[[nodiscard]] bool runtime_is_ending() noexcept;
// Registers `call`. Each thread that begins to destroy a runtime makes this call, once
// runtime_is_ending() is true there, to notify fibers that wait for more work. A process has one
// such call: a later registration replaces it. It must not park.
void on_runtime_end(void (*call)() noexcept) noexcept;

}  // namespace weft::detail
