#include <weft/http/header.hpp>

#include <cstddef>

#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

bool equal_tokens(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] != right[i] && lower(left[i]) != lower(right[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_item(std::string_view& list) noexcept {
  const std::size_t comma = list.find(',');
  const std::string_view item = trimmed(list.substr(0, comma));
  list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  return item;
}

bool list_has(std::string_view list, std::string_view token) noexcept {
  while (!list.empty()) {
    if (equal_tokens(take_item(list), token)) return true;
  }
  return false;
}

}  // namespace weft::http
