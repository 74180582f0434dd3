#include <weft/detail/wait_reason.hpp>

namespace weft::detail {

const char* to_string(WaitReason reason) noexcept {
  switch (reason) {
    case WaitReason::none:
      return "none";
    case WaitReason::yield:
      return "yield";
    case WaitReason::sleep:
      return "sleep";
    case WaitReason::join:
      return "join";
    case WaitReason::mutex:
      return "mutex";
    case WaitReason::shared_mutex_read:
      return "shared mutex, to read";
    case WaitReason::shared_mutex_write:
      return "shared mutex, to write";
    case WaitReason::condition_variable:
      return "condition variable";
    case WaitReason::wait_group:
      return "wait group";
    case WaitReason::semaphore:
      return "semaphore";
    case WaitReason::latch:
      return "latch";
    case WaitReason::barrier:
      return "barrier";
    case WaitReason::once:
      return "once";
    case WaitReason::event:
      return "event";
    case WaitReason::channel_send:
      return "channel send";
    case WaitReason::channel_receive:
      return "channel receive";
    case WaitReason::select:
      return "select";
    case WaitReason::select_socket:
      return "select with sockets";
    case WaitReason::timer:
      return "timer";
    case WaitReason::pool_submit:
      return "pool submit";
    case WaitReason::pool_idle:
      return "pool idle";
    case WaitReason::pool_wait:
      return "pool wait";
    case WaitReason::readable:
      return "readable";
    case WaitReason::writable:
      return "writable";
    case WaitReason::blocking:
      return "blocking";
    case WaitReason::stack:
      return "stack";
  }
  return "unknown";
}

}  // namespace weft::detail
