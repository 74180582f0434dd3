#include <weft/http/form.hpp>

#include <array>
#include <weft/error.hpp>
#include <weft/http/error.hpp>

#include "libs/http/wire/list_items.hpp"
#include "libs/http/wire/media_type.hpp"

namespace weft::http {

net::Result<std::vector<FormField>> parse_form(std::string_view text, const FormLimits& limits) {
  net::Result<std::vector<FormField>> fields;
  if (text.size() > limits.bytes) return {.error = Errc::form_too_large};
  while (!text.empty()) {
    const std::string_view pair = take_up_to('&', text);
    if (pair.empty()) continue;
    if (fields.value.size() == limits.fields) return {.error = Errc::form_too_large};
    const std::size_t equals = pair.find('=');
    std::string value;
    if (equals != std::string_view::npos) value = decode_query(pair.substr(equals + 1));
    fields.value.push_back({decode_query(pair.substr(0, equals)), std::move(value)});
  }
  return fields;
}

net::Result<std::vector<FormField>> read_form(Request& request, const FormLimits& limits) {
  const auto type = request.header("content-type").value_or("");
  if (!equal_tokens(media_type(type), "application/x-www-form-urlencoded")) {
    return {.error = Errc::unsupported_form};
  }
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const auto [count, error] = request.read_some(std::as_writable_bytes(std::span(part)));
    if (error == weft::Errc::end_of_stream) return parse_form(text, limits);
    if (error) return {.error = error};
    if (count > limits.bytes - text.size()) return {.error = Errc::form_too_large};
    text.append(part.data(), count);
  }
}

}  // namespace weft::http
