// A plugin that has weft in it; see unload_host.cpp.
#include <weft/runtime.hpp>

extern "C" [[gnu::visibility("default")]] int plugin_run() {
  return weft::run([] { return 6; });
}
