#include "base/membarrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace weft::base {

namespace {

bool membarrier(int command) noexcept {
  const int saved = errno;
  const bool done = ::syscall(SYS_membarrier, command, 0U, 0) == 0;
  errno = saved;
  return done;
}

}  // namespace

bool prepare_barriers() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

bool barrier_all_threads() noexcept { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

}  // namespace weft::base
