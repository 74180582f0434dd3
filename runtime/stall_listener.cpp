#include <weft/detail/atomic.hpp>
#include <weft/detail/stall_listener.hpp>

namespace weft::detail {

namespace {

// Order
//   [listener]  listen_to_stalls stores the address (release) -> stall_listener loads it (acquire):
//               the contents of the listener.
constinit Atomic<const StallListener*> installed{nullptr};

}  // namespace

void listen_to_stalls(const StallListener& listener) noexcept {
  installed.store(&listener, release);  // [listener]
}

const StallListener* stall_listener() noexcept {
  return installed.load(acquire);  // [listener]
}

}  // namespace weft::detail
