#include "libs/http/wire/head_parser.hpp"

#include <llhttp.h>

#include <memory>

namespace weft::http {

namespace {

struct Sink {
  Head* head;
  std::size_t max_headers;
  bool too_many = false;
};

Sink& sink_of(llhttp_t* parser) noexcept { return *static_cast<Sink*>(parser->data); }

// Extends `text` by the piece at `at`. The parser reports a string in one or more pieces, and each
// piece begins where the previous one ends.
void append(std::string_view& text, const char* at, std::size_t size) noexcept {
  text = text.empty()
             ? std::string_view(at, size)
             : std::string_view(text.data(), static_cast<std::size_t>(at + size - text.data()));
}

int on_name(llhttp_t* parser, const char* at, std::size_t size) {
  Sink& sink = sink_of(parser);
  Head& head = *sink.head;
  // If the last header already has a value, this piece begins the name of a new header. Otherwise,
  // the piece continues the name of the last header.
  if (head.count == 0 || head.storage()[head.count - 1].value.data() != nullptr) {
    if (head.count == sink.max_headers) {
      sink.too_many = true;
      return HPE_USER;
    }
    std::construct_at(&head.storage()[head.count++]);
  }
  append(head.storage()[head.count - 1].name, at, size);
  return 0;
}

int on_value(llhttp_t* parser, const char* at, std::size_t size) {
  Head& head = *sink_of(parser).head;
  if (head.count == 0) return HPE_USER;
  std::string_view& value = head.storage()[head.count - 1].value;
  if (value.data() == nullptr) value = {at, 0};
  append(value, at, size);
  return 0;
}

// Sets the value if it is empty, because the parser may not call on_value() for an empty value.
int on_value_end(llhttp_t* parser) {
  Head& head = *sink_of(parser).head;
  if (head.count == 0) return HPE_USER;
  Header& header = head.storage()[head.count - 1];
  if (header.value.data() == nullptr) header.value = {header.name.data(), 0};
  return 0;
}

// Stops the parser at the end of the head, because it must not read the body.
int on_head_end(llhttp_t* /*parser*/) { return HPE_PAUSED; }

llhttp_settings_t make_settings() noexcept {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
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

// llhttp rejects unknown methods and versions, so our own code parses the first line. llhttp gets
// one of these lines instead, and then the headers.
constexpr std::string_view kFirstLine[] = {"GET / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\n"};

Fault fault_of(llhttp_errno_t error) noexcept {
  switch (error) {
    case HPE_UNEXPECTED_CONTENT_LENGTH:
    case HPE_INVALID_CONTENT_LENGTH:
      return Errc::malformed_length;
    case HPE_INVALID_TRANSFER_ENCODING:
      return Errc::malformed_coding;
    default:
      return Errc::malformed_header;
  }
}

// Parses the headers in `text`, which begins after the first line.
Fault parse_headers(std::string_view text, llhttp_type_t type, std::size_t max_headers,
                    Head& head) noexcept {
  Sink sink{&head, max_headers};
  llhttp_t parser;
  llhttp_init(&parser, type, &kSettings);
  parser.data = &sink;
  const std::string_view first_line = kFirstLine[type == HTTP_REQUEST ? 0 : 1];
  (void)llhttp_execute(&parser, first_line.data(), first_line.size());
  const llhttp_errno_t outcome = llhttp_execute(&parser, text.data(), text.size());
  if (sink.too_many) return Errc::head_too_large;
  if (outcome != HPE_PAUSED) return fault_of(outcome);
  for (std::size_t i = 0; i < head.count; ++i) {
    Header& header = head.storage()[i];
    header.value = without_blanks(header.value);
    if (!is_token(header.name)) return Errc::malformed_header;
  }
  return {};
}

}  // namespace

Fault parse_request_head(std::string_view text, std::size_t max_headers, Head& head) noexcept {
  head.clear();
  const std::size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return Errc::malformed_start;
  if (const Fault fault = parse_request_line(text.substr(0, end), head)) return fault;
  if (const Fault fault = parse_headers(text.substr(end + 2), HTTP_REQUEST, max_headers, head)) {
    return fault;
  }
  return apply_request_rules(head);
}

Fault parse_response_head(std::string_view text, std::size_t max_headers, Head& head) noexcept {
  head.clear();
  const std::size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return Errc::malformed_start;
  if (const Fault fault = parse_status_line(text.substr(0, end), head)) return fault;
  if (const Fault fault = parse_headers(text.substr(end + 2), HTTP_RESPONSE, max_headers, head)) {
    return fault;
  }
  return apply_response_rules(head);
}

}  // namespace weft::http
