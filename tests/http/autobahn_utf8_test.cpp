// Tests Autobahn's cases 6: valid and invalid UTF-8 texts.
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/http/autobahn.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::string_literals;

// The sequences of Markus Kuhn's UTF-8 test, in the order of the suite's groups 6.5 to 6.23. A '+'
// marks valid UTF-8, and a '-' marks invalid bytes.
using Groups = std::vector<std::vector<std::string>>;

// 6.5 to 6.11: first, last and other characters.
void add_boundaries(Groups& all) {
  const std::string kosme = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";
  all.push_back({"+hello$world", "+hello\xc2\xa2world", "+hello\xe2\x82\xacworld",
                 "+hello\xf0\xa4\xad\xa2world", "+" + kosme});
  std::vector<std::string> prefixes;
  const std::set<std::size_t> whole = {2, 5, 7, 9, 11};
  for (std::size_t i = 1; i <= kosme.size(); ++i) {
    prefixes.push_back((whole.contains(i) ? "+" : "-") + kosme.substr(0, i));
  }
  all.push_back(prefixes);
  all.push_back({"+\0"s, "+\xc2\x80", "+\xe0\xa0\x80", "+\xf0\x90\x80\x80"});
  all.push_back({"-\xf8\x88\x80\x80\x80", "-\xfc\x84\x80\x80\x80\x80"});
  all.push_back({"+\x7f", "+\xdf\xbf", "+\xef\xbf\xbf", "+\xf4\x8f\xbf\xbf"});
  all.push_back({"-\xf7\xbf\xbf\xbf", "-\xfb\xbf\xbf\xbf\xbf", "-\xfd\xbf\xbf\xbf\xbf\xbf"});
  all.push_back({"+\xed\x9f\xbf", "+\xee\x80\x80", "+\xef\xbf\xbd", "+\xf4\x8f\xbf\xbf",
                 "-\xf4\x90\x80\x80"});
}

// 6.12 to 6.16: bytes that are missing or impossible.
void add_incomplete(Groups& all) {
  std::vector<std::string> continuations = {"-\x80", "-\xbf"};
  std::string alternating = "-\x80";
  for (int i = 2; i <= 6; ++i) {
    alternating += i % 2 == 0 ? '\xbf' : '\x80';
    continuations.push_back(alternating);
  }
  std::string every = "-";
  for (unsigned byte = 0x80; byte < 0xbf; ++byte) every += static_cast<char>(byte);
  continuations.push_back(every);
  all.push_back(continuations);

  std::vector<std::string> starts;
  const std::vector<std::pair<unsigned, unsigned>> ranges = {
      {0xc0, 0xdf}, {0xe0, 0xef}, {0xf0, 0xf7}, {0xf8, 0xfb}, {0xfc, 0xfd}};
  for (const auto& [low, high] : ranges) {
    std::string start = "-";
    for (unsigned byte = low; byte < high; ++byte) start.append({static_cast<char>(byte), ' '});
    starts.push_back(start);
  }
  all.push_back(starts);

  // The last byte of each sequence is missing; first single sequences, then all in a row.
  std::vector<std::string> cut_off;
  std::string joined = "-";
  for (const bool is_first : {true, false}) {
    constexpr std::array<unsigned char, 5> kFirst = {0xc0, 0xe0, 0xf0, 0xf8, 0xfc};
    constexpr std::array<unsigned char, 5> kLast = {0xdf, 0xef, 0xf7, 0xfb, 0xfd};
    for (std::size_t i = 0; i < kFirst.size(); ++i) {
      std::string part(1, static_cast<char>(is_first ? kFirst[i] : kLast[i]));
      part.append(i, is_first ? '\x80' : '\xbf');
      cut_off.push_back("-" + part);
      joined += part;
    }
  }
  all.push_back(cut_off);
  all.push_back({joined});
  all.push_back({"-\xfe", "-\xff", "-\xfe\xfe\xff\xff"});
}

// 6.17 to 6.23: overlong forms, surrogates, and code points that are no characters.
void add_code_points(Groups& all) {
  all.push_back({"-\xc0\xaf", "-\xe0\x80\xaf", "-\xf0\x80\x80\xaf", "-\xf8\x80\x80\x80\xaf",
                 "-\xfc\x80\x80\x80\x80\xaf"});
  all.push_back({"-\xc1\xbf", "-\xe0\x9f\xbf", "-\xf0\x8f\xbf\xbf", "-\xf8\x87\xbf\xbf\xbf",
                 "-\xfc\x83\xbf\xbf\xbf\xbf"});
  all.push_back({"-\xc0\x80", "-\xe0\x80\x80", "-\xf0\x80\x80\x80", "-\xf8\x80\x80\x80\x80",
                 "-\xfc\x80\x80\x80\x80\x80"});
  all.push_back({"-\xed\xa0\x80", "-\xed\xad\xbf", "-\xed\xae\x80", "-\xed\xaf\xbf",
                 "-\xed\xb0\x80", "-\xed\xbe\x80", "-\xed\xbf\xbf"});
  std::vector<std::string> pairs;
  for (const char* const high : {"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf"}) {
    for (const char* const low : {"\xed\xb0\x80", "\xed\xbf\xbf"}) {
      pairs.push_back("-"s + high + low);
    }
  }
  all.push_back(pairs);
  std::vector<std::string> unassigned = {"+\xef\xbf\xbe", "+\xef\xbf\xbf"};
  for (unsigned plane = 1; plane <= 16; ++plane) {
    for (const char last : {'\xbe', '\xbf'}) {
      unassigned.push_back({'+', static_cast<char>(0xf0 | plane >> 2U),
                            static_cast<char>(0x80 | (plane << 4U & 0x30U) | 0xfU), '\xbf', last});
    }
  }
  all.push_back(unassigned);
  std::vector<std::string> specials;
  for (unsigned last = 0xb9; last <= 0xbf; ++last) {
    specials.push_back("+\xef\xbf"s + static_cast<char>(last));
  }
  all.push_back(specials);
}

void run_utf8(Suite& suite) {
  const std::string good =
      "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!";
  const std::string kosme = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";
  const std::string bad = kosme + "\xed\xa0\x80" + "edited";
  suite.check_well("6.1.1", frame(0x81, ""), text(""));
  suite.check_well("6.1.2", frame(0x01, "") + frame(0x00, "") + frame(0x80, ""), text(""));
  suite.check_well("6.1.3", frame(0x01, "") + frame(0x00, "middle") + frame(0x80, ""),
                   text("middle"));
  suite.check_well("6.2.1", frame(0x81, good), text(good));
  suite.check_well("6.2.2", fragments(1, good, 12), text(good));
  suite.check_well("6.2.3", fragments(1, good, 1), text(good));
  suite.check_well("6.2.4", fragments(1, kosme, 1), text(kosme));
  suite.check_refused("6.3.1", frame(0x81, bad), 1007);
  suite.check_refused("6.3.2", fragments(1, bad, 1), 1007);
  // The refusal waits neither for the end of the message nor for that of the frame.
  const std::string above = "\xf4\x90\x80\x80";
  suite.check("6.4.1", {frame(0x01, kosme), frame(0x00, above)}, closed(1007));
  suite.check("6.4.2", {frame(0x01, kosme + "\xf4"), frame(0x00, "\x90")}, closed(1007));
  const std::string whole = frame(0x81, kosme + above + "edited");
  const std::size_t valid = 6 + kosme.size();
  suite.check("6.4.3", {whole.substr(0, valid), whole.substr(valid, 4)}, closed(1007));
  suite.check("6.4.4", {whole.substr(0, valid + 1), whole.substr(valid + 1, 1)}, closed(1007));
  Groups groups;
  add_boundaries(groups);
  add_incomplete(groups);
  add_code_points(groups);
  std::size_t group = 5;
  for (const std::vector<std::string>& sequences : groups) {
    std::size_t i = 0;
    for (const std::string& sequence : sequences) {
      const std::string name = number(number("6", group), ++i);
      const std::string payload = sequence.substr(1);
      if (sequence.front() == '+') {
        suite.check_well(name, frame(0x81, payload), text(payload));
      } else {
        suite.check_refused(name, frame(0x81, payload), 1007);
      }
    }
    ++group;
  }
}

TEST_SUITE_BEGIN("http/autobahn");

SIM_TEST_CASE_WITH(
    "a WebSocket server sends the expected replies in the UTF-8 cases (section 6) of the Autobahn "
    "suite",
    {.workers = {1}, .options = {.seeds = 1}}) {
  Suite suite({});
  run_utf8(suite);
  CHECK(suite.count() == 145);
}

TEST_SUITE_END();

}  // namespace
