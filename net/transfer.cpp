#include "net/transfer.hpp"

namespace weft::net {

Result<Socket> adopt(io::Poller& poller, int descriptor) noexcept {
  io::IoHandle* handle = nullptr;
  const std::error_code error = poller.add(descriptor, handle);
  if (error) close_descriptor(descriptor);
  return {.value = Socket(handle), .error = error};
}

}  // namespace weft::net
