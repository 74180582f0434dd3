#include "http/head_parser.hpp"

#include <llhttp.h>

#include <memory>

#include "http/head_rules.hpp"

namespace weft::http {

namespace {

struct Sink {
  Head* head;
  std::size_t max_headers;
  bool too_many = false;
};

Sink& sink_of(llhttp_t* parser) noexcept { return *static_cast<Sink*>(parser->data); }

// A text comes in one piece, or in pieces that lie one behind the other.
void append(std::string_view& text, const char* at, std::size_t size) noexcept {
  text = text.empty()
             ? std::string_view(at, size)
             : std::string_view(text.data(), static_cast<std::size_t>(at + size - text.data()));
}

int on_url(llhttp_t* parser, const char* at, std::size_t size) {
  append(sink_of(parser).head->target, at, size);
  return 0;
}

int on_name(llhttp_t* parser, const char* at, std::size_t size) {
  Sink& sink = sink_of(parser);
  Head& head = *sink.head;
  // A name follows a value; a further piece of a name follows a piece of it.
  if (head.count == 0 || head.storage[head.count - 1].value.data() != nullptr) {
    if (head.count == sink.max_headers) {
      sink.too_many = true;
      return HPE_USER;
    }
    std::construct_at(&head.storage[head.count++]);
  }
  append(head.storage[head.count - 1].name, at, size);
  return 0;
}

int on_value(llhttp_t* parser, const char* at, std::size_t size) {
  Head& head = *sink_of(parser).head;
  if (head.count == 0) return HPE_USER;
  std::string_view& value = head.storage[head.count - 1].value;
  if (value.data() == nullptr) value = {at, 0};
  append(value, at, size);
  return 0;
}

// A value without a byte may come without a piece.
int on_value_end(llhttp_t* parser) {
  Head& head = *sink_of(parser).head;
  if (head.count == 0) return HPE_USER;
  Header& header = head.storage[head.count - 1];
  if (header.value.data() == nullptr) header.value = {header.name.data(), 0};
  return 0;
}

// The body is not the parser's.
int on_head_end(llhttp_t* /*parser*/) { return HPE_PAUSED; }

llhttp_settings_t make_settings() noexcept {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_url = on_url;
  settings.on_header_field = on_name;
  settings.on_header_value = on_value;
  settings.on_header_value_complete = on_value_end;
  settings.on_headers_complete = on_head_end;
  return settings;
}

const llhttp_settings_t kSettings = make_settings();

std::string_view without_blanks(std::string_view text) noexcept {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

enum class Outcome : std::uint8_t { parsed, malformed, too_many };

Outcome parse(std::string_view text, llhttp_type_t type, std::size_t max_headers,
              Head& head) noexcept {
  Sink sink{&head, max_headers};
  llhttp_t parser;
  llhttp_init(&parser, type, &kSettings);
  parser.data = &sink;
  const llhttp_errno_t outcome = llhttp_execute(&parser, text.data(), text.size());
  if (sink.too_many) return Outcome::too_many;
  if (outcome != HPE_PAUSED) return Outcome::malformed;
  head.status = parser.status_code;
  for (std::size_t i = 0; i < head.count; ++i) {
    Header& header = head.storage[i];
    header.value = without_blanks(header.value);
    if (!is_token(header.name)) return Outcome::malformed;
  }
  return Outcome::parsed;
}

}  // namespace

int parse_request_head(std::string_view text, std::size_t max_headers, Head& head) noexcept {
  head.clear();
  const std::string_view line = text.substr(0, text.find('\r'));
  if (const int status = check_request_line(line, head)) return status;
  switch (parse(text, HTTP_REQUEST, max_headers, head)) {
    case Outcome::malformed:
      return 400;
    case Outcome::too_many:
      return 431;
    case Outcome::parsed:
      break;
  }
  return apply_request_rules(head);
}

int parse_response_head(std::string_view text, std::size_t max_headers, Head& head) noexcept {
  head.clear();
  const std::string_view line = text.substr(0, text.find('\r'));
  if (!line.starts_with("HTTP/1.") || line.size() < 12) return 502;
  if ((line[7] != '0' && line[7] != '1') || line[8] != ' ') return 502;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (line[9] < '1' || !is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]) ||
      (line.size() > 12 && line[12] != ' ')) {
    return 502;
  }
  head.minor_version = line[7] - '0';
  if (parse(text, HTTP_RESPONSE, max_headers, head) != Outcome::parsed) return 502;
  return apply_response_rules(head);
}

}  // namespace weft::http
