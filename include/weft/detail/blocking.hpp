// Declares the interface to the threads that make blocking calls.
#pragma once

#include <weft/detail/waist.hpp>

namespace weft::detail {

// Describes one call that a helper thread makes while a fiber waits. The object is on the fiber's
// stack.
struct BlockingCall {
  void (*make)(BlockingCall& self) noexcept;
  BlockingCall* next = nullptr;  // The next call in the queue.
  BlockingCall* previous = nullptr;
  Waker waker = {};
};

// Parks the calling fiber until a helper thread of its runtime has made `call`. Only fibers may
// call it. Throws std::system_error if there is no helper thread and the system refuses a new
// thread; in that case the call has not been made. In a simulation the fiber makes the call itself.
void make_on_helper(BlockingCall& call);

}  // namespace weft::detail
