// Keeps the library loaded.
#pragma once

namespace weft::base {

// From now on dlclose() does not unload the module that weft is part of: a shared library, or a
// plugin that has linked the archive. Called before a signal handler is installed that stays
// installed, since a signal would otherwise run code that is gone. Does nothing in a program, which
// is never unloaded. Any thread; takes the loader's lock.
void pin_this_module() noexcept;

}  // namespace weft::base
