#include "tests/http/corpus.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace weft::test {

namespace {

// Holds one text, or the alternatives in braces.
using Choices = std::vector<std::string>;

class LineReader {
 public:
  LineReader(std::string_view text, int line) : text_(text), line_(line) {}

  std::vector<Choices> read() {
    std::vector<Choices> parts;
    while (!text_.empty()) {
      if (text_.front() == '{') {
        text_.remove_prefix(1);
        parts.push_back(read_choices());
      } else {
        parts.push_back({read_bytes()});
      }
    }
    return parts;
  }

 private:
  [[noreturn]] void fail(const char* why) const {
    throw std::runtime_error("requests.table:" + std::to_string(line_) + ": " + why);
  }

  // Reads up to the next special character.
  std::string read_bytes() {
    std::string bytes;
    while (!text_.empty() && text_.front() != '{') bytes += read_byte();
    return bytes;
  }

  char read_byte() {
    const char first = text_.front();
    text_.remove_prefix(1);
    if (first != '\\') return first;
    if (text_.empty()) fail("a backslash at the end");
    const char which = text_.front();
    text_.remove_prefix(1);
    switch (which) {
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case '0':
        return '\0';
      case 'x': {
        if (text_.size() < 2) fail("a byte needs two digits");
        const std::string digits(text_.substr(0, 2));
        text_.remove_prefix(2);
        return static_cast<char>(std::stoi(digits, nullptr, 16));
      }
      default:
        return which;
    }
  }

  // Reads from after the opening brace to the closing brace, which it consumes.
  Choices read_choices() {
    Choices choices(1);
    for (;;) {
      if (text_.empty()) fail("a brace is not closed");
      if (text_.front() == '}') {
        text_.remove_prefix(1);
        return choices;
      }
      if (text_.front() == '{') {
        text_.remove_prefix(1);
        choices.back() += read_choices().front();
      } else if (text_.front() == '|') {
        text_.remove_prefix(1);
        choices.emplace_back();
      } else if (text_.starts_with("..")) {
        text_.remove_prefix(2);
        if (!choices.back().empty() && !text_.empty() && text_.front() != '|' &&
            text_.front() != '}' && choices.size() == 1 && choices.back().size() == 1 &&
            choices.back() != "/") {
          return read_range(choices.back().front());
        }
        choices.back() += "..";
      } else if (text_.front() == '*' && choices.size() == 1 && text_.size() > 1 &&
                 text_[1] >= '0' && text_[1] <= '9') {
        text_.remove_prefix(1);
        return {read_repeated(choices.back())};
      } else {
        choices.back() += read_byte();
      }
    }
  }

  Choices read_range(char first) {
    const char last = read_byte();
    if (text_.empty() || text_.front() != '}') fail("a range ends with a brace");
    text_.remove_prefix(1);
    Choices bytes;
    for (int byte = static_cast<unsigned char>(first); byte <= static_cast<unsigned char>(last);
         ++byte) {
      bytes.push_back(std::string(1, static_cast<char>(byte)));
    }
    return bytes;
  }

  std::string read_repeated(const std::string& what) {
    const std::size_t end = text_.find('}');
    if (end == std::string_view::npos) fail("a brace is not closed");
    const int times = std::stoi(std::string(text_.substr(0, end)));
    text_.remove_prefix(end + 1);
    std::string all;
    for (int i = 0; i < times; ++i) all += what;
    return all;
  }

  std::string_view text_;
  const int line_;
};

std::vector<std::string> all_of(const std::vector<Choices>& parts) {
  std::vector<std::string> texts(1);
  for (const Choices& choices : parts) {
    std::vector<std::string> longer;
    for (const std::string& text : texts) {
      for (const std::string& choice : choices) longer.push_back(text + choice);
    }
    texts = std::move(longer);
  }
  return texts;
}

}  // namespace

std::vector<CorpusCase> read_corpus() {
  std::ifstream file(WEFT_REQUESTS_TABLE);
  if (!file) throw std::runtime_error("cannot read " WEFT_REQUESTS_TABLE);
  std::vector<CorpusCase> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t bar = line.find(" | ");
    if (bar == std::string::npos) {
      throw std::runtime_error("requests.table:" + std::to_string(number) + ": no bar");
    }
    std::vector<int> statuses;
    std::istringstream words(line.substr(0, bar));
    for (int status = 0; words >> status;) statuses.push_back(status);
    for (std::string& bytes :
         all_of(LineReader(std::string_view(line).substr(bar + 3), number).read())) {
      cases.push_back({statuses, std::move(bytes), number});
    }
  }
  return cases;
}

}  // namespace weft::test
