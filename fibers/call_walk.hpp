// The calls that a thread is in, found in a copy of its stack.
#pragma once

#include "fibers/backtrace.hpp"
#include "fibers/thread_image.hpp"

namespace weft::fibers {

// Walks the image by the unwind tables of the program. Nothing but the image, the tables and code
// is read, whatever the image holds: it may have been taken anywhere, or be torn. Where a register
// is unknown that a table wants, or there is no table, the next word that looks like a return
// address is taken for one. Each frame is a return address; that of the innermost call is the place
// after its current instruction. Call it from plain threads.
[[nodiscard]] Backtrace calls_in(const ThreadImage& image) noexcept;

}  // namespace weft::fibers
