#include "net/transfer.hpp"

namespace weft::net {

Result<Socket> adopt(io::Poller& poller, int descriptor) noexcept {
  io::IoHandle* handle = nullptr;
  const std::error_code error = poller.add(descriptor, handle);
  if (error) close_descriptor(descriptor);
  return {.value = Socket(handle), .error = error};
}

Result<Socket> adopt_foreign(int descriptor) {
  const auto [poller, no_poller] = find_poller();
  if (no_poller) return {.error = no_poller};
  const CallResult prepared = set_non_blocking(descriptor);
  if (prepared.error != 0) return {.error = prepared.code()};
  io::IoHandle* handle = nullptr;
  const std::error_code refused = poller->add(descriptor, handle);
  return {.value = Socket(handle), .error = refused};
}

}  // namespace weft::net
