// Is a plugin that contains weft; see unload_host.cpp.
#include <weft/runtime.hpp>

extern "C" [[gnu::visibility("default")]] int plugin_run() {
  return weft::run([] { return 6; });
}
