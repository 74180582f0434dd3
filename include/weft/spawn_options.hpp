// Options of a fiber when it is spawned.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

struct SpawnOptions {
  // Bytes, rounded up to 16 KiB times a power of two; 0 means the runtime's default (64 KiB).
  // At most 16 MiB; more throws std::system_error (Errc::invalid_stack_size).
  // A fiber of the default size may run on the stack of one that waits for it, see
  // JoinHandle::join(); it has no less than that size then. One of another size never does.
  std::size_t stack_size = 0;
  // Shown in dumps and overflow reports; the first 31 characters are copied by the call.
  std::string_view name = {};
  // The fiber runs on one worker thread from its beginning to its end, wherever and by whom it is
  // woken: for libraries that keep things by thread. That worker is the spawning fiber's, or, if a
  // plain thread spawns, one of the runtime's `workers` in turn; never a spare one. While that
  // worker is stuck in another fiber, no other worker can run this one.
  bool pinned = false;
};

}  // namespace weft
