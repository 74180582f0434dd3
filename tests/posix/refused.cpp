// Is a program whose link hides the functions of weft-posix, so the constructor of its first scope
// throws.
#include <cstdio>
#include <cstring>
#include <system_error>
#include <weft/posix.hpp>
#include <weft/runtime.hpp>

int main() {
  int status = 1;
  weft::run([&] {
    try {
      const weft::posix::Scope scope;
      std::puts("a scope without effect was not refused");
    } catch (const std::system_error& error) {
      std::puts(error.what());
      status = error.code() == std::errc::not_supported &&
                       std::strstr(error.what(), "do not reach weft-posix") != nullptr
                   ? 0
                   : 2;
    }
  });
  return status;
}
