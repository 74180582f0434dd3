// What the end of a runtime reports while it waits for fibers.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "tests/support/fiber_test.hpp"

namespace {

// Reads what goes to stderr, and sets `found` once that holds all of `texts`.
class StderrReader {
 public:
  StderrReader(std::array<std::string_view, 2> texts, weft::Event& found)
      : saved_(::dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    thread_ = std::thread([this, texts, &found, from = ends[0]] {
      std::array<char, 4096> buffer;
      for (ssize_t count = 0; (count = ::read(from, buffer.data(), buffer.size())) > 0;) {
        text_.append(buffer.data(), static_cast<std::size_t>(count));
        const auto has = [this](std::string_view each) { return text_.find(each) != text_.npos; };
        if (has(texts[0]) && has(texts[1])) found.set();
      }
      ::close(from);
    });
  }
  StderrReader(const StderrReader&) = delete;
  StderrReader& operator=(const StderrReader&) = delete;
  ~StderrReader() {
    if (thread_.joinable()) (void)end();
  }
  // Everything that was written.
  std::string end() {
    ::dup2(saved_, STDERR_FILENO);  // The pipe's last writer: the thread reads its end.
    ::close(saved_);
    thread_.join();
    return std::move(text_);
  }

 private:
  int saved_;
  std::string text_;
  std::thread thread_;
};

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

TEST_SUITE_BEGIN("runtime/end_report");

// Without the report these would wait forever.

TEST_CASE("run reports what main has thrown while another fiber lives") {
  weft::Event reported;
  StderrReader reader({"bad configuration", "the_server"}, reported);
  CHECK_THROWS_WITH_AS(weft::run([&] {
                         weft::go({.name = "the_server"}, [&] { reported.wait(); });
                         throw std::runtime_error("bad configuration");
                       }),
                       "bad configuration", std::runtime_error);
  CHECK(count_of("an exception ends the scope of a Runtime", reader.end()) == 1);
}

TEST_CASE("run reports the fibers that it waits for after 5 s") {
  weft::Event reported;
  StderrReader reader({"has waited for 5 s", "refresher"}, reported);
  weft::run([&] { weft::go({.name = "refresher"}, [&] { reported.wait(); }); });
  CHECK(count_of("has waited for 5 s", reader.end()) == 1);
}

TEST_CASE("run reports nothing when main throws and no other fiber lives") {
  weft::Event never;
  StderrReader reader({"weft", "weft"}, never);
  CHECK_THROWS_AS(weft::run([] { throw std::runtime_error("alone"); }), std::runtime_error);
  CHECK(reader.end().empty());
}

TEST_SUITE_END();

}  // namespace
