// Describes code addresses and types in words.
#pragma once

#include <chrono>
#include <string>
#include <typeinfo>

namespace weft::runtime {

// Returns `module+0x1a2b`, and the function's name if the module exports it. The module is the
// program or a shared library; `addr2line -e module` takes the number.
[[nodiscard]] std::string describe_address(const void* address);

// Returns a type as the source writes it: `serve(int)::{lambda()#1}`. It cuts a very long name, and
// takes kilobytes of stack for a long name.
[[nodiscard]] std::string describe_type(const std::type_info& type);

// Returns a duration to about two digits, such as `1.2 s`, `40 s`, `12 min` or `3 d`.
[[nodiscard]] std::string describe_age(std::chrono::nanoseconds age);

}  // namespace weft::runtime
