// Keeps the library loaded.
#pragma once

namespace weft::base {

// After the call, dlclose() does not unload the module that weft is part of: a shared library, or a
// plugin that has linked the archive. Call it before installing a permanent signal handler, because
// a late signal would run unloaded code. The call has no effect in a program, which is never
// unloaded. Any thread may call it; it takes the loader's lock.
void pin_this_module() noexcept;

}  // namespace weft::base
