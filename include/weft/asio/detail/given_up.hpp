// Collects the callers whose operations a context abandons in its destructor.
#pragma once

#include <utility>
#include <vector>
#include <weft/asio/library.hpp>
#include <weft/fiber_local.hpp>
#include <weft/wait_group.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {
namespace detail {

// When a context ends, its destructor abandons all operations: Asio destroys their handlers. Until
// it has destroyed all of them, the callers that waited for these operations must not use Asio's
// services again. A GivenUp on the destructor's stack therefore ends these waits only after that.
class GivenUp {
 public:
  GivenUp() : previous_(std::exchange(current(), this)) {}
  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;
  ~GivenUp() {
    current() = previous_;
    for (WaitGroup* const one : pending_) one->done();
  }

  // Calls pending.done() now or, if a GivenUp is on the caller's stack, in its destructor.
  static void end(WaitGroup& pending) noexcept {
    GivenUp* const here = current();
    if (here == nullptr) return pending.done();
    here->pending_.push_back(&pending);
  }

 private:
  static GivenUp*& current() {
    static const FiberLocal<GivenUp*> of_caller;
    return *of_caller;
  }

  GivenUp* const previous_;
  std::vector<WaitGroup*> pending_;
};

}  // namespace detail
}  // namespace WEFT_ASIO_LIBRARY
}  // namespace weft::asio
