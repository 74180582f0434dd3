// Moves bytes between two descriptors within the kernel.
#pragma once

#include <cstdint>
#include <weft/net/buffered.hpp>
#include <weft/net/result.hpp>
#include <weft/until.hpp>

#include "io/poller.hpp"

namespace weft::net {

// `is_done` is false if the kernel cannot move bytes between these descriptors, or opens no pipe.
// The caller then continues with a buffer, from where this call stopped.
struct Spliced {
  Result<std::uint64_t> moved = {};
  bool is_done = true;
};

// Copies through a pipe until the source ends. `sink` writes to the same descriptor, and writes the
// bytes in the pipe if the kernel refuses to move them.
Spliced copy_by_splice(io::IoHandle& from, io::IoHandle& to, const detail::ByteSink& sink,
                       const Until& until);

}  // namespace weft::net
