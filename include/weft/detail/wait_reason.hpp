// Lists the reasons for which fibers park.
#pragma once

#include <cstdint>

namespace weft::detail {

// The reason for which a fiber is parked; dumps show it.
enum class WaitReason : std::uint8_t {
  none,
  yield,
  sleep,
  join,
  mutex,
  shared_mutex_read,
  shared_mutex_write,
  condition_variable,
  wait_group,
  semaphore,
  latch,
  barrier,
  once,
  event,
  channel_send,
  channel_receive,
  select,
  select_socket,  // A select with a case that the kernel may make ready.
  timer,
  pool_submit,
  pool_idle,
  pool_wait,
  readable,
  writable,
  blocking,
  stack,  // A fiber that cannot start, because the system provides no stack.
};
[[nodiscard]] const char* to_string(WaitReason reason) noexcept;

}  // namespace weft::detail
