// Keeps the library loaded.
#pragma once

namespace weft::base {

// Prevents dlclose() from unloading the module that contains weft: a shared library, or a plugin
// that has linked the archive. Call it before the installation of a permanent signal handler,
// because a late signal would otherwise run unloaded code. The call has no effect in a program,
// which is never unloaded. Any thread may call it. Takes the loader's lock.
void pin_this_module() noexcept;

}  // namespace weft::base
