// Tests the signal that lists all fibers while the process continues.
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <weft/channel.hpp>
#include <weft/go.hpp>
#include <weft/this_fiber.hpp>

#include "runtime/signal_profile.hpp"
#include "tests/support/deadlock.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace {

// Redirects stderr to a file in memory while this object lives.
class CapturedStderr {
 public:
  CapturedStderr() : file_(memfd_create("stderr", MFD_CLOEXEC)), before_(dup(STDERR_FILENO)) {
    dup2(file_, STDERR_FILENO);
  }
  ~CapturedStderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(file_);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  [[nodiscard]] std::string text() const {
    std::string text(1 << 16, '\0');
    const ssize_t length = pread(file_, text.data(), text.size(), 0);
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return text;
  }

 private:
  int file_;
  int before_;
};

using Handler = void (*)(int);

bool is_handled_by(Handler handler, int number) {
  struct sigaction current {};
  sigaction(number, nullptr, &current);
  return current.sa_handler == handler;
}

void old_handler(int) {}

// Installs a handler that the test can recognize.
struct OldHandler {
  explicit OldHandler(int signal_number) : number(signal_number) { signal(number, &old_handler); }
  ~OldHandler() { signal(number, SIG_DFL); }
  int number;
};

TEST_SUITE_BEGIN("runtime/dump_signal");

FIBER_TEST_CASE_WITH("each dump signal writes a dump of every fiber, and the process continues",
                     {.options = {.dump_signal = SIGUSR1}}) {
  weft::Channel<int> channel;
  auto parked = weft::spawn({.name = "the receiver"}, [&] { (void)channel.receive(); });
  const auto shows_it = [](const std::string& text, std::size_t from) {
    return text.find("'the receiver' is parked: channel receive", from) != std::string::npos;
  };
  std::ostringstream seen;
  for (; !shows_it(seen.str(), 0); weft::this_fiber::yield()) runtime.dump(seen);
  const CapturedStderr captured;
  std::size_t length = 0;
  for (int i = 0; i < 3; ++i) {
    raise(SIGUSR1);
    // A dump is written in one call, so the next round sees no remaining part of this dump.
    while (!shows_it(captured.text(), length)) weft::this_fiber::yield();
    length = captured.text().size();
  }
  CHECK(captured.text().find("2 fibers") != std::string::npos);
  channel.close();
  parked.join();
}

TEST_CASE("a profile that a signal requests is written to a file that only its owner can read") {
  const weft::test::TestGuard guard("a recording that was asked for by a signal leaves a file");
  const CapturedStderr captured;
  setenv("WEFT_PROFILE_FOLDER", "/tmp", 1);
  {
    const weft::Runtime runtime({.workers = 1});
    weft::runtime::SignalProfile profile;
    profile.begin(std::chrono::milliseconds(10));
    while (captured.text().find('\n') == std::string::npos) usleep(1000);
  }
  unsetenv("WEFT_PROFILE_FOLDER");
  const std::string path = "/tmp/weft-profile-" + std::to_string(getpid()) + "-1.folded";
  struct stat file {};
  const bool is_there = stat(path.c_str(), &file) == 0;
  (void)unlink(path.c_str());
  if (weft::test::kEmulated) {
    return weft::test::skip("the emulator may lack timers of thread time");
  }
  if (weft::test::kSanitized) {
    CHECK(captured.text().starts_with("weft: no profile in " + path));
    return;
  }
  CHECK(captured.text().starts_with("weft: a profile of 10 ms is in " + path));
  CHECK(is_there);
  CHECK((file.st_mode & 0777) == 0600);
}

TEST_CASE(
    "a dump signal queued with a value starts a profile, which ends early when the runtime ends") {
  const weft::test::TestGuard guard("a queued signal's number asks for a profile");
  const CapturedStderr captured;
  {
    const weft::Runtime runtime({.workers = 1, .dump_signal = SIGUSR1});
    // A second recording is refused, unless the first one was refused.
    while (captured.text().empty()) {
      (void)sigqueue(getpid(), SIGUSR1, {.sival_int = 60});
      usleep(1000);
    }
  }
  CHECK(captured.text().find("weft: no profile in ./weft-profile-") != std::string::npos);
  if (weft::test::kEmulated) {
    return weft::test::skip("the emulator may lack timers of thread time");
  }
  CHECK(captured.text().find(weft::test::kSanitized ? "not supported" : "cancelled") !=
        std::string::npos);
}

TEST_CASE("the earlier signal handler is restored when the last runtime has ended") {
  const weft::test::TestGuard guard("the handler that was there before is put back");
  const OldHandler before(SIGUSR2);
  {
    const weft::Runtime first({.workers = 1, .dump_signal = SIGUSR2});
    CHECK(!is_handled_by(&old_handler, SIGUSR2));
    { const weft::Runtime second({.workers = 1, .dump_signal = SIGUSR2}); }
    CHECK(!is_handled_by(&old_handler, SIGUSR2));
  }
  CHECK(is_handled_by(&old_handler, SIGUSR2));
}

TEST_CASE(
    "a signal handler installed after the runtime's handler stays in place when the runtime ends") {
  const weft::test::TestGuard guard("a handler that was installed later is left in place");
  const OldHandler clean_up(SIGUSR2);
  signal(SIGUSR2, SIG_IGN);
  {
    const weft::Runtime runtime({.workers = 1, .dump_signal = SIGUSR2});
    signal(SIGUSR2, &old_handler);
  }
  CHECK(is_handled_by(&old_handler, SIGUSR2));
}

TEST_CASE("a runtime refuses a second dump signal, and a signal that cannot be handled") {
  const weft::test::TestGuard guard("a second signal is refused without a trace");
  for (const int number : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
                           SIGABRT, 32, 12345, -1}) {
    CHECK_THROWS_AS(weft::Runtime({.workers = 1, .dump_signal = number}), std::invalid_argument);
  }
  const OldHandler other(SIGUSR2);
  const weft::Runtime runtime({.workers = 1, .dump_signal = SIGUSR1});
  CHECK_THROWS_AS(weft::Runtime({.workers = 1, .dump_signal = SIGUSR2}), std::invalid_argument);
  CHECK(is_handled_by(&old_handler, SIGUSR2));
}

// The case does not use the fixture, whose watchdog thread might wake a fiber.
TEST_CASE("a deadlock is reported even though a thread waits for the dump signal") {
  if (!weft::test::kDeadlocksAreFound) {
    weft::test::skip(weft::test::kNoVerdict);
    return;
  }
  const weft::test::WithoutSignalHandlers bare;
  alarm(60 * weft::test::kSlowdown);
  weft::Channel<int> channel;
  weft::run({.workers = 2,
             .on_deadlock = [&](std::string_view) { channel.close(); },
             .dump_signal = SIGUSR1},
            [&] { CHECK(!channel.receive()); });
  alarm(0);
}

TEST_SUITE_END();

}  // namespace
