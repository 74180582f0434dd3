#include <weft/detail/blocking.hpp>

#include <system_error>
#include <weft/detail/simulated.hpp>

#include "scheduler/helpers.hpp"
#include "scheduler/shared.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::detail {

namespace {

// Returns the helpers of the calling fiber's runtime.
scheduler::Helpers& helpers_here() noexcept {
  return *scheduler::current_worker()->shared().options().helpers;
}

}  // namespace

void make_on_helper(BlockingCall& call) {
  if (is_simulated()) [[unlikely]]
    return call.make(call);
  if (const auto refused = helpers_here().expect()) {
    throw std::system_error(
        refused,
        "weft::blocking: there is no helper thread, and the system refuses a new one; "
        "its limit of threads or of memory has been met");
  }
  call.waker = current();
  park({[](void* submitted) noexcept {
          // This code runs after the switch, on the same worker but on another stack.
          helpers_here().submit(*static_cast<BlockingCall*>(submitted));
        },
        &call},
       WaitReason::blocking);
}

}  // namespace weft::detail
