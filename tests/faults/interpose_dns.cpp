// In this program, c-ares allocates with the functions of interpose.hpp.
#include <ares.h>

#include <cstdlib>

#include "tests/faults/interpose.hpp"

namespace weft::test {
namespace {

void* allocate(std::size_t bytes) { return allocate_below(Call::allocate_in_dns, bytes); }
void* resize(void* memory, std::size_t bytes) {
  return resize_below(Call::allocate_in_dns, memory, bytes);
}

// The first initialization chooses the functions; the library's later one only counts.
[[maybe_unused]] const bool is_set = [] {
  const int status = ares_library_init_mem(ARES_LIB_INIT_ALL, &allocate, &release_below, &resize);
  if (status != ARES_SUCCESS) std::abort();
  return true;
}();

}  // namespace
}  // namespace weft::test
