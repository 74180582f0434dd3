#include "runtime/call_names.hpp"

#include "runtime/symbols.hpp"

namespace weft::runtime {

std::string as_element(std::string text) {
  for (char& character : text) {
    if (character == ';' || character == '\n') character = ',';
  }
  return text;
}

const std::string& CallNames::of(const void* returns_to) {
  const auto [place, is_new] = names_.try_emplace(returns_to);
  if (is_new) {
    // The call precedes its return address.
    place->second = as_element(runtime::describe_address(static_cast<const char*>(returns_to) - 1));
  }
  return place->second;
}

}  // namespace weft::runtime
