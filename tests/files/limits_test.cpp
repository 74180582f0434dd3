// Tests deadlines and stop requests of file calls while all threads for files are occupied.
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/latch.hpp>

#include "tests/files/folder.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/parked.hpp"

using namespace weft;
using namespace std::chrono_literals;
using files::Access;
using files::File;
using test::await_parked;
using test::bytes;
using test::Folder;

TEST_SUITE_BEGIN("files/limits");

namespace {

// Occupies all threads of the group while this object lives.
class TakenThreads {
 public:
  TakenThreads() {
    for (std::thread& taker : takers_) {
      taker = std::thread([this] {
        CHECK(!files::file_group()
                   .run([this] {
                     taken_.count_down();
                     goes_on_.wait();
                   })
                   .error);
      });
    }
    taken_.wait();
  }
  ~TakenThreads() {
    goes_on_.set();
    for (std::thread& taker : takers_) taker.join();
  }
  TakenThreads(const TakenThreads&) = delete;
  TakenThreads& operator=(const TakenThreads&) = delete;

 private:
  static constexpr std::size_t kThreads = 16;
  Latch taken_{kThreads};
  Event goes_on_;
  std::thread takers_[kThreads];
};

constexpr files::OpenOptions kNew = {.access = Access::read_write, .create = true};

// Returns whether a call needs a thread, which depends on the file system.
template <class Call>
bool needs_thread(Call call) {
  const std::uint64_t before = files::file_group().stats().finished;
  CHECK(!call().error);
  return files::file_group().stats().finished != before;
}

// Checks that `until` ends each call, with the error `expected`.
template <class Error>
void give_up(const Folder& folder, const Until& until, Error expected) {
  auto [file, unopened] = File::open(folder / "there", kNew);
  CHECK(!unopened);
  const auto write = [&opened = file](const Until& limit) {
    return opened.write_all(bytes("much"), 0, limit);
  };
  const auto read = [](const Until& limit) { return files::read_file("/proc/self/stat", limit); };
  const bool write_waits = needs_thread([&] { return write({}); });
  const bool read_waits = needs_thread([&] { return read({}); });
  {
    const TakenThreads taken;
    CHECK(File::open(folder / "new", kNew, until).error == expected);
    CHECK(files::list_directory(folder.path(), until).error == expected);
    CHECK(files::write_file(folder / "new", "late", until) == expected);
    CHECK(files::replace_file(folder / "new", "late", until) == expected);
    CHECK(file.sync(until) == expected);
    if (write_waits) {
      const auto [count, error] = write(until);
      CHECK(error == expected);
      CHECK(count == 0);
    }
    if (read_waits) CHECK(read(until).error == expected);
  }
  // None of these calls has begun.
  CHECK(files::list_directory(folder.path()).value.size() == 1);
  CHECK(!files::read_file("/proc/self/stat").value.empty());
}

}  // namespace

FIBER_TEST_CASE("a file call is never made when its limit ends the wait for a file thread") {
  const Folder folder;
  give_up(folder, Deadline::after(5ms), Errc::timed_out);
  std::stop_source stop;
  {
    const TakenThreads taken;
    std::vector<JoinHandle<std::error_code>> waiting;
    for (const char* const name : {"a", "b"}) {
      waiting.push_back(spawn([&folder, name, token = stop.get_token()] {
        return File::open(folder / name, kNew, token).error;
      }));
    }
    await_parked(2);
    (void)stop.request_stop();
    for (auto& caller : waiting) CHECK(caller.join() == Errc::cancelled);
  }
  give_up(folder, stop.get_token(), Errc::cancelled);
}

TEST_CASE(
    "a deadline or a stop request ends a plain thread's wait for a file thread when no runtime "
    "exists") {
  const test::TestGuard guard("limits end a plain thread's wait for a thread, without a runtime");
  const Folder folder;
  give_up(folder, Deadline::after(5ms), Errc::timed_out);
  std::stop_source stop;
  {
    const TakenThreads taken;
    std::thread stopper([&] { (void)stop.request_stop(); });
    CHECK(File::open(folder / "new", kNew, stop.get_token()).error == Errc::cancelled);
    stopper.join();
  }
  give_up(folder, stop.get_token(), Errc::cancelled);
}

TEST_SUITE_END();
