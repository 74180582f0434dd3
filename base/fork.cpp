#include <pthread.h>
#include <unistd.h>

#include <system_error>
#include <weft/detail/fork.hpp>

namespace weft::detail {

void hold_over_forks(void (*lock)(), void (*unlock)()) {
  const int error = pthread_atfork(lock, unlock, unlock);
  if (error != 0) throw std::system_error(error, std::generic_category(), "weft: pthread_atfork");
}

int process_number() noexcept { return getpid(); }

}  // namespace weft::detail
