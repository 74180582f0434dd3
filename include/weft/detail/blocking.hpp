// Declares the interface to the threads that make blocking calls.
#pragma once

#include <weft/detail/waist.hpp>

namespace weft::detail {

// Describes one call that a thread makes while its caller waits. The object is on the caller's
// stack or, for a BlockingGroup, on the heap.
struct BlockingCall {
  void (*make)(BlockingCall& self) noexcept;
  BlockingCall* next = nullptr;  // The next call in the queue.
  BlockingCall* previous = nullptr;
  Waker waker = {};
};

// Parks the calling fiber until a helper thread of its runtime has made `call`. Only fibers may
// call it. Throws std::system_error, and does not make the call, if there is no helper thread and
// the system cannot create one. In a simulation, the fiber makes the call itself.
void make_on_helper(BlockingCall& call);

}  // namespace weft::detail
