#include <weft/http/header.hpp>

#include <cstddef>

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/list_items.hpp"

namespace weft::http {

bool equal_tokens(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] != right[i] && to_lower(left[i]) != to_lower(right[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_up_to(char separator, std::string_view& list) noexcept {
  const std::size_t end = list.find(separator);
  const std::string_view item = list.substr(0, end);
  list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  return item;
}

std::string_view take_item(std::string_view& list) noexcept {
  return trimmed(take_up_to(',', list));
}

std::string_view take_part(std::string_view& list) noexcept {
  return trimmed(take_up_to(';', list));
}

bool list_has(std::string_view list, std::string_view token) noexcept {
  while (!list.empty()) {
    if (equal_tokens(take_item(list), token)) return true;
  }
  return false;
}

}  // namespace weft::http
