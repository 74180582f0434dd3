#include "observe/json.hpp"

#include <cstdlib>
#include <ostream>

#include "base/utf8.hpp"

namespace weft::observe {

namespace {

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
    const std::string_view character = base::take_character(text);
    if (character.size() == 1) {
      append_escaped(to, character.front());
    } else {
      to.append(character);
    }
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
