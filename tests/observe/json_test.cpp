#include "observe/json.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

using weft::observe::append_json_string;
using weft::observe::JsonWriter;

namespace {

std::string quoted(std::string_view text) {
  std::string result;
  append_json_string(result, text);
  return result;
}

}  // namespace

TEST_SUITE_BEGIN("observe/json");

TEST_CASE("JsonWriter escapes a string only where JSON requires an escape") {
  CHECK(quoted("") == R"("")");
  CHECK(quoted("plain / text") == R"("plain / text")");
  CHECK(quoted(R"(a "b" \c)") == R"("a \"b\" \\c")");
  CHECK(quoted("line\nand\ttab") == R"("line\nand\ttab")");
  CHECK(quoted(std::string_view("\0\x01\x1f\x7f", 4)) == R"("\u0000\u0001\u001f\u007f")");
}

TEST_CASE("JsonWriter leaves valid UTF-8 unchanged and replaces each invalid byte") {
  CHECK(quoted("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80") ==
        "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(quoted("a\xFFz") == "\"a" + mark + "z\"");
  CHECK(quoted("\xC3") == "\"" + mark + "\"");                                   // Cut off.
  CHECK(quoted("\xC0\xAF") == "\"" + mark + mark + "\"");                        // An overlong
                                                                                 // form.
  CHECK(quoted("\xE0\x80\x80") == "\"" + mark + mark + mark + "\"");             // Also overlong.
  CHECK(quoted("\xED\xA0\x80") == "\"" + mark + mark + mark + "\"");             // A surrogate.
  CHECK(quoted("\xF4\x90\x80\x80") == "\"" + mark + mark + mark + mark + "\"");  // Too large.
  CHECK(quoted("\xE2\x82z") == "\"" + mark + mark + "z\"");
}

TEST_CASE("JsonWriter separates values with commas, and keys from values with colons") {
  std::ostringstream out;
  JsonWriter json(out);
  json.begin_object().field("a", 1).key("b").begin_array().value("x").value(true);
  json.begin_array().end_array().begin_object().end_object().value(-2).end_array();
  json.field("c", 18446744073709551615U).key("d").thousandths(1234).key("e").thousandths(-5);
  json.end_object().flush();
  CHECK(out.str() == R"({"a":1,"b":["x",true,[],{},-2],"c":18446744073709551615,)"
                     R"("d":1.234,"e":-0.005})");
}

TEST_SUITE_END();
