#include "runtime/process_exit.hpp"

#include <dlfcn.h>
#include <unwind.h>

#include <cstdlib>

namespace weft::runtime {

namespace {

struct Search {
  const void* function;
  bool found;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  // The call precedes its return address, which may be in the next function.
  auto* call = reinterpret_cast<void*>(_Unwind_GetIP(context) - 1);
  search.found = _Unwind_FindEnclosingFunction(call) == search.function;
  return search.found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

bool called_by_exit() noexcept {
  // Looked up by name: in a program that is not position-independent, `&std::exit` is an entry of
  // the program's own jump table.
  const void* function = dlsym(RTLD_NEXT, "exit");
  if (function == nullptr) function = reinterpret_cast<const void*>(&std::exit);
  Search search{function, false};
  (void)_Unwind_Backtrace(&look_at_frame, &search);
  return search.found;
}

}  // namespace weft::runtime
