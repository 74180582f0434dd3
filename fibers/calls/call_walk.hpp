// Finds the call stack of a thread in a copy of the thread's stack.
#pragma once

#include "fibers/calls/backtrace.hpp"
#include "fibers/calls/thread_image.hpp"

namespace weft::fibers {

// Walks the image with the program's unwind tables. The walk reads only the image, the tables and
// code, even if the image is inconsistent, because the thread may have been at any instruction. If
// a table needs an unknown register, or no table exists, the walk takes the next word that looks
// like a return address. Each frame is a return address; the innermost frame is the address
// after its current instruction. Plain threads call it.
[[nodiscard]] Backtrace calls_in(const ThreadImage& image) noexcept;

}  // namespace weft::fibers
