#include "base/pin.hpp"

#include <dlfcn.h>
#include <link.h>

namespace weft::base {

void pin_this_module() noexcept {
  Dl_info info{};
  void* found = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&pin_this_module), &info, &found, RTLD_DL_LINKMAP) ==
      0) {
    return;
  }
  const auto* module = static_cast<const link_map*>(found);
  // For the program itself, the loader's name is empty.
  if (module == nullptr || module->l_name == nullptr || *module->l_name == '\0') return;
  // The handle is never closed, so the module stays loaded even if the flag has no effect.
  (void)!dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace weft::base
