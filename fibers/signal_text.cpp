#include "fibers/signal_text.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <unistd.h>

namespace weft::fibers {

namespace {

// Returns the module that contains an address; null if no module contains it.
const link_map* module_of(const void* address) noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  // According to the C library's manual, a signal handler may call this function.
  dl_find_object found{};
  return _dl_find_object(const_cast<void*>(address), &found) == 0 ? found.dlfo_link_map : nullptr;
#else
  // An older C library has only this call, which takes the loader's lock. The lock is recursive.
  Dl_info info{};
  void* map = nullptr;
  const bool is_found = dladdr1(address, &info, &map, RTLD_DL_LINKMAP) != 0;
  return is_found ? static_cast<const link_map*>(map) : nullptr;
#endif
}

}  // namespace

SignalText& SignalText::operator<<(const char* text) noexcept {
  while (*text != '\0' && length_ < text_.size() - 1) text_[length_++] = *text++;
  return *this;
}

SignalText& SignalText::operator<<(std::uint64_t number) noexcept {
  add_digits(number, 10);
  return *this;
}

SignalText& SignalText::add_place(const void* address) noexcept {
  std::uint64_t number = reinterpret_cast<std::uintptr_t>(address);
  if (const link_map* module = module_of(address)) {
    // For the program itself, the loader's name is empty.
    const char* name = module->l_name;
    *this << (name == nullptr || *name == '\0' ? program_invocation_name : name) << "+";
    number -= module->l_addr;
  }
  *this << "0x";
  add_digits(number, 16);
  return *this;
}

// A truncated line also ends with a newline.
void SignalText::write_to_stderr() const noexcept {
  std::array<char, sizeof text_> line = text_;
  std::size_t length = length_;
  line[length++] = '\n';
  (void)!::write(STDERR_FILENO, line.data(), length);
}

void SignalText::add_digits(std::uint64_t number, unsigned base) noexcept {
  std::array<char, 20> digits;
  std::size_t count = 0;
  do {
    digits[count++] = "0123456789abcdef"[number % base];
    number /= base;
  } while (number != 0);
  while (count > 0 && length_ < text_.size() - 1) text_[length_++] = digits[--count];
}

}  // namespace weft::fibers
