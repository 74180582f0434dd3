#include "libs/http/wire/media_type.hpp"

#include <algorithm>
#include <weft/http/header.hpp>

#include "libs/http/wire/head_rules.hpp"
#include "libs/http/wire/list_items.hpp"

namespace weft::http {

namespace {

// Takes a token or a quoted string from the front of `text`; returns nothing if there is neither. A
// backslash escapes a quote or a backslash. A backslash before any other character is literal, as
// in the paths that old browsers send.
std::optional<std::string> take_word(std::string_view& text) {
  if (!text.starts_with('"')) {
    const std::string_view word = trimmed(text.substr(0, text.find(';')));
    text.remove_prefix(std::min(text.find(';'), text.size()));
    return is_token(word) ? std::optional<std::string>(word) : std::nullopt;
  }
  std::string word;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return word;
    }
    const bool escapes =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    if (escapes) ++i;
    word += text[i];
  }
  return std::nullopt;
}

}  // namespace

std::string_view media_type(std::string_view value) noexcept {
  return trimmed(value.substr(0, value.find(';')));
}

std::optional<std::string> parameter_of(std::string_view value, std::string_view name,
                                        bool& is_clear) {
  std::optional<std::string> found;
  value.remove_prefix(std::min(value.find(';'), value.size()));
  while (!value.empty()) {
    if (!value.starts_with(';')) {
      is_clear = false;
      return found;
    }
    value = trimmed(value.substr(1));
    if (value.empty() || value.front() == ';') continue;
    const std::size_t equals = value.find('=');
    const std::string_view key = trimmed(value.substr(0, equals));
    if (equals == std::string_view::npos || !is_token(key)) {
      is_clear = false;
      return found;
    }
    value = trimmed(value.substr(equals + 1));
    auto word = take_word(value);
    value = trimmed(value);
    const bool is_it = equal_tokens(key, name);
    if (!word || (is_it && found)) {
      is_clear = false;
      return found;
    }
    if (is_it) found = std::move(word);
  }
  return found;
}

}  // namespace weft::http
