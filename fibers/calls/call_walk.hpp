// The calls that a thread is in, found in a copy of its stack.
#pragma once

#include "fibers/calls/backtrace.hpp"
#include "fibers/calls/thread_image.hpp"

namespace weft::fibers {

// Walks the image by the unwind tables of the program. It reads only the image, the tables and
// code, whatever the image contains: the thread may have been anywhere, and the image may be
// inconsistent. If a table needs an unknown register, or there is no table, the walk takes the next
// word that looks like a return address. Each frame is a return address; for the innermost call it
// is the place after its current instruction. Plain threads call it.
[[nodiscard]] Backtrace calls_in(const ThreadImage& image) noexcept;

}  // namespace weft::fibers
