// Callers that wait for operations which the end of a context gives up.
#pragma once

#include <utility>
#include <vector>
#include <weft/asio/library.hpp>
#include <weft/fiber_local.hpp>
#include <weft/wait_group.hpp>

namespace weft::asio {
inline namespace WEFT_ASIO_LIBRARY {
namespace detail {

// While one lives on the stack of a caller, it reports what this caller gives up only at its end. A
// context that ends has Asio destroy all handlers; callers that wait must not use Asio's services
// again before these have come to rest.
class GivenUp {
 public:
  GivenUp() : previous_(std::exchange(current(), this)) {}
  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;
  ~GivenUp() {
    current() = previous_;
    for (WaitGroup* const one : pending_) one->done();
  }

  // Ends one of `pending`: now, or as said above.
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
