#include "runtime/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace weft::runtime {

namespace {

// Names of templates can be longer than is useful.
constexpr std::size_t kMostCharacters = 160;

std::string demangle(const char* name) {
  struct Free {
    void operator()(char* text) const noexcept { std::free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, Free> readable(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  std::string text(readable ? readable.get() : name);
  if (text.size() > kMostCharacters) text.replace(kMostCharacters, std::string::npos, "...");
  return text;
}

std::string hexadecimal(std::uintptr_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return std::string("0x").append(digits.data(), end);
}

}  // namespace

std::string describe_address(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  Dl_info info{};
  void* map = nullptr;
  if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 || info.dli_fname == nullptr) {
    return hexadecimal(number);
  }
  // The loader has moved the module by this much: 0 for a program at a fixed address.
  const std::uintptr_t moved = static_cast<const link_map*>(map)->l_addr;
  std::string text(info.dli_fname);
  text.append("+").append(hexadecimal(number - moved));
  if (info.dli_sname != nullptr) text.append(" (").append(demangle(info.dli_sname)).append(")");
  return text;
}

std::string describe_type(const std::type_info& type) { return demangle(type.name()); }

std::string describe_age(std::chrono::nanoseconds age) {
  using namespace std::chrono;
  if (age < seconds(10)) {
    const auto tenths = age / milliseconds(100);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
  }
  if (age < minutes(2)) return std::to_string(age / seconds(1)) + " s";
  if (age < hours(2)) return std::to_string(age / minutes(1)) + " min";
  if (age < days(2)) return std::to_string(age / hours(1)) + " h";
  return std::to_string(age / days(1)) + " d";
}

}  // namespace weft::runtime
