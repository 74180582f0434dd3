#include "observe/json.hpp"

#include <cstdlib>
#include <ostream>

namespace weft::observe {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// How many bytes the UTF-8 character at the start of `text` has; 0 if there is none. Too long
// forms, surrogates and what is beyond U+10FFFF are none.
std::size_t length_of_character(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(at(i))) return 0;
  }
  const unsigned char second = at(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

void append_escaped(std::string& to, char character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(character);
  switch (character) {
    case '"':
      to.append("\\\"");
      break;
    case '\\':
      to.append("\\\\");
      break;
    case '\n':
      to.append("\\n");
      break;
    case '\t':
      to.append("\\t");
      break;
    default:
      if (code >= 0x20 && code != 0x7F) {
        to.push_back(character);
        break;
      }
      to.append("\\u00");
      to.push_back(kDigits[code >> 4]);
      to.push_back(kDigits[code & 15]);
  }
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to.push_back('"');
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    if (length == 1) {
      append_escaped(to, text.front());
    } else {
      to.append(length == 0 ? kReplacement : text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  to.push_back('"');
}

void JsonWriter::separate() {
  if (text_.size() >= kBuffer) flush();
  if (!is_first_) text_.push_back(',');
  is_first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_.push_back(bracket);
  is_first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_.push_back(bracket);
  is_first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(text_, name);
  text_.push_back(':');
  is_first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool yes) { return digits(yes ? "true" : "false"); }

JsonWriter& JsonWriter::thousandths(std::int64_t number) {
  const std::string fraction = std::to_string(std::llabs(number % 1000) + 1000);
  std::string text(number < 0 && number > -1000 ? 1 : 0, '-');
  text.append(std::to_string(number / 1000));
  return digits(text.append(".").append(fraction, 1));
}

JsonWriter& JsonWriter::digits(std::string_view text) {
  separate();
  text_.append(text);
  return *this;
}

void JsonWriter::flush() {
  out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
  text_.clear();
}

}  // namespace weft::observe
