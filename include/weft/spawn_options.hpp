// Options of a new fiber.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

struct SpawnOptions {
  // The size in bytes, rounded up to 16 KiB times a power of two; 0: the runtime's default (64
  // KiB). At most 16 MiB; a spawn with a larger size throws std::system_error
  // (Errc::invalid_stack_size). A fiber of the default size may run on the stack of a fiber that
  // joins it, where it has as much room; see JoinHandle::join(). A fiber of another size always has
  // its own stack.
  std::size_t stack_size = 0;
  // The name in dumps and overflow reports; the spawn copies the first 31 characters.
  std::string_view name = {};
  // Whether one worker thread runs the fiber from beginning to end. Use it for libraries that store
  // data per thread. A fiber's spawn uses that fiber's worker, unless it is a spare. A plain
  // thread's spawns use the runtime's `workers` in rotation. A worker that the runtime no longer
  // needs still runs its pinned fibers. They cannot run while another fiber blocks it.
  bool pinned = false;
};

}  // namespace weft
