// The names of calls in stacks that are written as text.
#pragma once

#include <string>
#include <unordered_map>

namespace weft::runtime {

// An element of a folded stack, without the characters that the format uses itself.
[[nodiscard]] std::string as_element(std::string text);

// Addresses repeat, and looking one up takes a while. Owner: one thread.
class CallNames {
 public:
  // The call that returns to this address, as runtime::describe_address() names it. Throws
  // std::bad_alloc.
  [[nodiscard]] const std::string& of(const void* returns_to);

 private:
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace weft::runtime
