// Options of a new fiber.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

struct SpawnOptions {
  // The size in bytes, rounded up to 16 KiB times a power of two; 0: the runtime's default (64
  // KiB). At most 16 MiB; a spawn with a larger size throws std::system_error
  // (Errc::invalid_stack_size). A fiber of the default size may run on the stack of a fiber that
  // joins it, if enough of that stack is free; see JoinHandle::join(). A fiber of another size
  // always has its own stack.
  std::size_t stack_size = 0;
  // The name in dumps and in reports of stack overflows. The spawn copies the first 31 characters.
  std::string_view name = {};
  // Whether one worker thread runs the fiber from beginning to end. Use it for libraries that store
  // data per thread. A spawn by a fiber selects that fiber's worker, unless it is a spare worker.
  // Spawns by plain threads select the regular workers in turn. If the runtime later uses fewer
  // workers, an unused one still runs its pinned fibers, unless another fiber blocks that worker.
  bool pinned = false;
};

}  // namespace weft
