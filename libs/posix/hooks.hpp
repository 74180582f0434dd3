// The intercepted functions, by source file. A reference to these tables also makes a linker take
// the sources out of an archive.
#pragma once

#include <span>

#include "libs/posix/real.hpp"

namespace weft::posix {

[[nodiscard]] std::span<const Hook> receive_hooks() noexcept;
[[nodiscard]] std::span<const Hook> send_hooks() noexcept;
[[nodiscard]] std::span<const Hook> connection_hooks() noexcept;
[[nodiscard]] std::span<const Hook> poll_hooks() noexcept;
[[nodiscard]] std::span<const Hook> sleep_hooks() noexcept;
[[nodiscard]] std::span<const Hook> helper_hooks() noexcept;
[[nodiscard]] std::span<const Hook> name_hooks() noexcept;
[[nodiscard]] std::span<const Hook> file_hooks() noexcept;
[[nodiscard]] std::span<const Hook> lock_hooks() noexcept;
[[nodiscard]] std::span<const Hook> key_hooks() noexcept;
[[nodiscard]] std::span<const Hook> condition_hooks() noexcept;
[[nodiscard]] std::span<const Hook> semaphore_hooks() noexcept;

// Empties the table in the child of a fork: no fiber waits there, and a thread that fork() did not
// copy may hold a lock.
void forget_conditions() noexcept;
void forget_semaphores() noexcept;

}  // namespace weft::posix
