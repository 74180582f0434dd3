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

// A context's destructor abandons all operations: Asio destroys the operations' handlers. Callers
// that waited for the operations must not use Asio's services again until all these handlers are
// destroyed. A GivenUp in the destructor therefore keeps them waiting until then.
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
