// In this program, OpenSSL allocates with the functions of interpose.hpp.
#include <openssl/crypto.h>

#include <cstdlib>

#include "tests/faults/interpose.hpp"

namespace weft::test {
namespace {

void* allocate(std::size_t bytes, const char* /*file*/, int /*line*/) {
  return allocate_below(Call::allocate_in_tls, bytes);
}
void* resize(void* memory, std::size_t bytes, const char* /*file*/, int /*line*/) {
  return resize_below(Call::allocate_in_tls, memory, bytes);
}
void release(void* memory, const char* /*file*/, int /*line*/) { release_below(memory); }

// Set before OpenSSL allocates anything.
[[maybe_unused]] const bool is_set = [] {
  if (CRYPTO_set_mem_functions(&allocate, &resize, &release) != 1) std::abort();
  return true;
}();

}  // namespace
}  // namespace weft::test
