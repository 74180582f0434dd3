#include <pthread.h>

#include <system_error>
#include <weft/detail/fork.hpp>

namespace weft::detail {

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  const int error = pthread_atfork(before, in_parent, in_child);
  if (error != 0)
    throw std::system_error(error, std::generic_category(),
                            "weft: the handlers of forks cannot be registered");
}

}  // namespace weft::detail
