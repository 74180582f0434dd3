// Names the calls in stacks that are written as text.
#pragma once

#include <string>
#include <unordered_map>

namespace weft::runtime {

// Makes an element of a folded stack, without the characters that the format reserves.
[[nodiscard]] std::string as_element(std::string text);

// Caches names, because addresses repeat and a lookup is slow. Owner: one thread.
class CallNames {
 public:
  // Returns the name of the call with this return address, as runtime::describe_address() gives it.
  // Throws std::bad_alloc.
  [[nodiscard]] const std::string& of(const void* returns_to);

 private:
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace weft::runtime
