// Counts callers that wait for operations that a context abandons in its destructor.
#pragma once

#include <utility>
#include <vector>
#include <weft/asio/library.hpp>
#include <weft/fiber_local.hpp>
#include <weft/wait_group.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {
namespace detail {

// While a GivenUp is on the stack of a caller, the caller reports abandoned operations only when
// the GivenUp is destroyed. An ending context makes Asio destroy all handlers; waiting callers must
// not use Asio's services again before all handlers are destroyed.
class GivenUp {
 public:
  GivenUp() : previous_(std::exchange(current(), this)) {}
  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;
  ~GivenUp() {
    current() = previous_;
    for (WaitGroup* const one : pending_) one->done();
  }

  // Calls pending.done() now or, if the caller has a GivenUp, when the GivenUp is destroyed.
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
