#include "fibers/exception_state.hpp"

#include <cxxabi.h>

#include <cerrno>

namespace weft::fibers {

ThreadState ThreadState::of_this_thread() noexcept {
  ThreadState state{reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals()), &errno, {}};
  state.between.create();
  return state;
}

}  // namespace weft::fibers
