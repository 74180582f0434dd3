// Writes JSON piece by piece.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace weft::observe {

// Appends `text` with its quotes. Escapes control characters, quotes and backslashes, and replaces
// invalid UTF-8 by U+FFFD, so that every reader accepts the text.
void append_json_string(std::string& to, std::string_view text);

// Writes to a stream, with commas and no other separators. The caller keeps the order: a key before
// each value of an object.
class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}
  // The caller must call flush(), which may throw.
  ~JsonWriter() = default;
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool yes);
  template <std::unsigned_integral Number>
  JsonWriter& value(Number number) {
    return digits(std::to_string(number));
  }
  template <std::signed_integral Number>
  JsonWriter& value(Number number) {
    return digits(std::to_string(number));
  }
  // Writes a number of thousandths as units: 1234 is written as 1.234.
  JsonWriter& thousandths(std::int64_t number);
  template <class Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

  // Passes the text written so far to the stream. Throws what the stream throws.
  void flush();

 private:
  static constexpr std::size_t kBuffer = std::size_t{64} << 10;

  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& digits(std::string_view text);
  void separate();

  std::ostream& out_;
  std::string text_;
  bool is_first_ = true;  // The next value has nothing before it, or only its key.
};

}  // namespace weft::observe
