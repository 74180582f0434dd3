#include "libs/http/wire/head_repair.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <weft/http/header.hpp>

#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

// If `length` is empty, sets it to the first item of the list. Returns whether all items equal
// `length`.
bool add_lengths(std::string_view list, std::string_view& length) noexcept {
  list = trimmed(list);
  if (list.empty() || list.back() == ',') return false;
  while (!list.empty()) {
    const std::string_view item = take_item(list);
    if (length.empty()) length = item;
    if (item.empty() || item != length) return false;
  }
  return true;
}

}  // namespace

void unfold(std::string& head) noexcept {
  for (std::size_t end = head.find("\r\n"); end != std::string::npos;
       end = head.find("\r\n", end + 2)) {
    const bool goes_on = end + 2 < head.size() && (head[end + 2] == ' ' || head[end + 2] == '\t');
    if (goes_on) head[end] = head[end + 1] = ' ';
  }
}

bool merge_lengths(std::string& head) {
  std::string merged;
  std::string_view length;
  for (std::string_view rest = head; !rest.empty();) {
    const std::size_t size = std::min(rest.find("\r\n"), rest.size() - 2) + 2;
    const std::string_view line = rest.substr(0, size);
    rest.remove_prefix(size);
    const std::size_t colon = std::min(line.find(':'), line.size());
    if (!equal_tokens(line.substr(0, colon), "content-length")) {
      merged += line;
      continue;
    }
    const bool is_first = length.empty();
    if (!add_lengths(line.substr(colon + 1, size - colon - 3), length)) return false;
    if (is_first) merged.append(line.substr(0, colon + 1)).append(length).append("\r\n");
  }
  head = std::move(merged);
  return true;
}

}  // namespace weft::http
