// Options of a new fiber.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

struct SpawnOptions {
  // The size in bytes, rounded up to 16 KiB times a power of two; 0: the runtime's default (64
  // KiB). At most 16 MiB; a spawn with a larger size throws std::system_error
  // (Errc::invalid_stack_size). A fiber of the default size may run on the stack of a fiber that
  // waits for it, with as much room; see JoinHandle::join(). A fiber of another size always has its
  // own stack.
  std::size_t stack_size = 0;
  // The name in dumps and overflow reports; the spawn copies the first 31 characters.
  std::string_view name = {};
  // Whether one worker thread runs the fiber from beginning to end. Use it for libraries that store
  // data per thread. A fiber's spawn uses that fiber's worker. A plain thread's spawns use the
  // runtime's `workers` in turn, never a spare worker. A worker that no longer takes part still
  // runs the fiber. While another fiber blocks the worker, the pinned fiber cannot run.
  bool pinned = false;
};

}  // namespace weft
