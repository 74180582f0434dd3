#include <weft/profile.hpp>

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/go.hpp>
#include <weft/live_page.hpp>
#include <weft/this_fiber.hpp>

#include "runtime/profile_stacks.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

namespace {

using namespace std::chrono_literals;
using weft::profile::Format;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Holds the fields of a protocol buffer message, in order: numbers, and the bytes of fields with a
// length.
struct Message {
  std::vector<std::pair<unsigned, std::uint64_t>> numbers;
  std::vector<std::pair<unsigned, std::string_view>> parts;

  [[nodiscard]] std::uint64_t number(unsigned field) const {
    for (const auto& [found, value] : numbers) {
      if (found == field) return value;
    }
    return 0;
  }
  [[nodiscard]] std::vector<std::string_view> all(unsigned field) const {
    std::vector<std::string_view> found;
    for (const auto& [number, bytes] : parts) {
      if (number == field) found.push_back(bytes);
    }
    return found;
  }
};

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  FAIL_CHECK("a number has no end");
  return 0;
}

Message decode(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    const auto field = static_cast<unsigned>(key >> 3);
    const std::uint64_t value = take_varint(bytes);
    if ((key & 7) == 0) {
      message.numbers.emplace_back(field, value);
      continue;
    }
    CHECK((key & 7) == 2);
    CHECK(value <= bytes.size());
    message.parts.emplace_back(field, bytes.substr(0, value));
    bytes.remove_prefix(std::min<std::size_t>(value, bytes.size()));
  }
  return message;
}

std::vector<std::uint64_t> numbers_of(std::string_view packed) {
  std::vector<std::uint64_t> numbers;
  while (!packed.empty()) numbers.push_back(take_varint(packed));
  return numbers;
}

// Decodes a profile in the way that readers of the format do.
struct Pprof {
  explicit Pprof(std::string_view bytes) : profile(decode(bytes)), texts(profile.all(6)) {
    for (const std::string_view part : profile.all(5)) {
      const Message function = decode(part);
      functions[function.number(1)] = texts.at(function.number(2));
    }
    for (const std::string_view part : profile.all(4)) {
      const Message location = decode(part);
      names[location.number(1)] = functions.at(decode(location.all(4).at(0)).number(1));
    }
  }
  // Returns the names of a sample's calls, outermost first.
  [[nodiscard]] std::string calls_of(const Message& sample) const {
    std::string calls;
    for (const std::uint64_t id : numbers_of(sample.all(1).at(0))) {
      calls = std::string(names.at(id)).append(calls.empty() ? "" : ";").append(calls);
    }
    return calls;
  }

  Message profile;
  std::vector<std::string_view> texts;
  std::map<std::uint64_t, std::string_view> functions;
  std::map<std::uint64_t, std::string_view> names;
};

// Computes until the flag is set.
void compute(const weft::detail::Atomic<bool>& end) {
  while (!end.load(weft::detail::relaxed)) weft::this_fiber::yield_if_due();
}

constexpr bool kHasSamples = !weft::test::kSanitized && !weft::test::kEmulated;

void handle_nothing(int /*signal*/) {}

}  // namespace

TEST_SUITE_BEGIN("observe/profile");

FIBER_TEST_CASE_WITH(
    "a processor profile shows which fibers are computing, with their names and callables",
    {.workers = {1, 2}}) {
  if (!kHasSamples) return;
  weft::detail::Atomic<bool> end{false};
  auto busy = weft::spawn([&] {
    weft::this_fiber::set_name("GET /busy");
    compute(end);
  });
  std::string folded;
  while (!contains(folded, "GET /busy;")) {
    auto [text, error] = weft::profile::processor({.duration = 20ms});
    CHECK(!error);
    folded = text;
  }
  const std::string_view line = std::string_view(folded).substr(folded.find("GET /busy;"));
  CHECK(contains(line.substr(0, line.find('\n')), "lambda"));
  CHECK(contains(line.substr(0, line.find('\n')), "observe_tests+0x"));
  for (bool is_seen = false; !is_seen;) {
    const auto [text, error] =
        weft::profile::processor({.duration = 20ms, .format = Format::pprof});
    CHECK(!error);
    const Pprof pprof(text);
    CHECK(pprof.texts.at(0).empty());
    CHECK(pprof.profile.number(12) == 10'000'000);
    CHECK(pprof.profile.number(10) >= 20'000'000);
    for (const std::string_view part : pprof.profile.all(2)) {
      const Message sample = decode(part);
      const auto values = numbers_of(sample.all(2).at(0));
      CHECK(values.at(1) == values.at(0) * 10'000'000);
      is_seen = is_seen || pprof.calls_of(sample).starts_with("GET /busy;");
    }
  }
  end.store(true, weft::detail::relaxed);
  busy.join();
}

FIBER_TEST_CASE_WITH(
    "a second processor profile is refused, and the end of a context ends the first profile",
    {.workers = {2}}) {
  if (!kHasSamples) return;
  weft::Context context;
  auto first = weft::spawn([&] {
    const weft::ContextScope scope(context);
    return weft::profile::processor({.duration = 60s}).error;
  });
  weft::test::await_parked(1);
  CHECK(weft::profile::processor().error == std::errc::operation_in_progress);
  CHECK(weft::live::answer("/profile").status == 409);
  context.cancel();
  CHECK(first.join() == weft::Errc::cancelled);
  CHECK(weft::live::answer("/profile?seconds=0.001").status == 200);
  CHECK(weft::live::answer("/profile?seconds=0.001&format=pprof").content_type ==
        "application/octet-stream");
  CHECK(weft::live::answer("/profile?format=svg").status == 400);
}

FIBER_TEST_CASE_WITH("a processor profile is refused if the system does not support it",
                     {.workers = {1}}) {
  if (weft::test::kSanitized) {
    CHECK(weft::profile::processor().error == std::errc::operation_not_supported);
    CHECK(weft::live::answer("/profile").status == 503);
    return;
  }
  struct sigaction own {};
  own.sa_handler = &handle_nothing;
  struct sigaction before {};
  CHECK(sigaction(SIGPROF, &own, &before) == 0);
  CHECK(weft::profile::processor().error == std::errc::device_or_resource_busy);
  CHECK(contains(weft::live::answer("/profile").body, "handles SIGPROF itself"));
  CHECK(sigaction(SIGPROF, &before, nullptr) == 0);
}

TEST_CASE("a profile is written as folded stacks and in the pprof format") {
  weft::runtime::Profile profile;
  profile.counts = "contentions";
  profile.times = "delay";
  profile.lost = 3;
  profile.add({"a;b\n", &typeid(int), {}, "mutex"}, {2, 300});
  profile.add({"a;b\n", &typeid(int), {}, "mutex"}, {1, 1});
  profile.add({"\xff", nullptr, {}, ""}, {1, 5});
  CHECK(weft::runtime::as_folded(profile) == "a,b,;int;[mutex] 301\n\xff 5\n");
  const std::string bytes = weft::runtime::as_pprof(profile);
  const Pprof pprof(bytes);
  std::vector<std::string> samples;
  for (const std::string_view part : pprof.profile.all(2)) {
    const Message sample = decode(part);
    for (const std::uint64_t value : numbers_of(sample.all(2).at(0))) {
      samples.push_back(std::to_string(value));
    }
    samples.push_back(pprof.calls_of(sample));
    const Message label = decode(sample.all(3).at(0));
    CHECK(pprof.texts.at(label.number(1)) == "fiber");
  }
  CHECK(samples ==
        std::vector<std::string>{"3", "301", "a;b\n;int;[mutex]", "1", "5", "\xEF\xBF\xBD"});
  const Message first = decode(pprof.profile.all(1).at(0));
  CHECK(pprof.texts.at(first.number(1)) == "contentions");
  CHECK(pprof.texts.at(first.number(2)) == "count");
  const Message second = decode(pprof.profile.all(1).at(1));
  CHECK(pprof.texts.at(second.number(1)) == "delay");
  CHECK(pprof.texts.at(second.number(2)) == "nanoseconds");
  CHECK(pprof.texts.at(pprof.profile.number(13)) == "samples lost: 3");
}

TEST_SUITE_END();
