#include <weft/detail/atomic.hpp>
#include <weft/detail/stall_listener.hpp>

namespace weft::detail {

namespace {

// Order
//   [listener]  listen_to_stalls stores it (release) -> stall_listener loads it (acquire): what it
//               consists of.
constinit Atomic<const StallListener*> installed{nullptr};

}  // namespace

void listen_to_stalls(const StallListener& listener) noexcept {
  installed.store(&listener, release);  // [listener]
}

const StallListener* stall_listener() noexcept {
  return installed.load(acquire);  // [listener]
}

}  // namespace weft::detail
