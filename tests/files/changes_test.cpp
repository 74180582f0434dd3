#include <weft/file_changes.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/runtime.hpp>

#include "tests/files/folder.hpp"
#include "tests/support/fiber_test.hpp"
#include "tests/support/skip.hpp"

namespace weft::test {

namespace {

using namespace std::chrono_literals;
using files::Change;
using files::ChangeKind;
using files::ChangeWatch;

const char* name_of(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::created:
      return "created";
    case ChangeKind::removed:
      return "removed";
    case ChangeKind::modified:
      return "modified";
    case ChangeKind::closed:
      return "closed";
    default:
      return "lost";
  }
}

// Returns all changes so far, with their paths below the folder.
std::vector<std::string> all_of(ChangeWatch& watch, const std::string& folder) {
  std::vector<std::string> all;
  for (;;) {
    const auto [change, error] = watch.next(Deadline::past());
    if (error) {
      CHECK(error == Errc::timed_out);
      return all;
    }
    all.push_back(std::string(name_of(change.kind)) + change.path.substr(folder.size()));
  }
}

}  // namespace

TEST_SUITE_BEGIN("files/changes");

FIBER_TEST_CASE("a ChangeWatch reports changes to a directory and to a file in order") {
  const Folder folder;
  const std::string root = folder / "";
  const std::string path = root.substr(0, root.size() - 1);
  auto [watch, error] = ChangeWatch::open();
  CHECK_FALSE(error);
  CHECK(watch.add(path));
  CHECK(watch.add(path + "/none") == std::errc::no_such_file_or_directory);
  CHECK(files::write_file(path + "/a", "text"));
  CHECK(all_of(watch, path) == std::vector<std::string>{"created/a", "modified/a", "closed/a"});
  std::filesystem::rename(path + "/a", path + "/b");
  CHECK(all_of(watch, path) == std::vector<std::string>{"removed/a", "created/b"});
  CHECK(watch.add(path + "/b"));
  CHECK(watch.remove(path));
  CHECK(watch.remove(path + "/none") == std::errc::invalid_argument);
  CHECK(::truncate((path + "/b").c_str(), 0) == 0);
  std::filesystem::remove(path + "/b");
  CHECK(all_of(watch, path) == std::vector<std::string>{"modified/b", "removed/b"});
  CHECK(watch.remove(path + "/b") == std::errc::invalid_argument);
}

FIBER_TEST_CASE(
    "a caller waits for the next change until a deadline passes or the ChangeWatch is closed") {
  const Folder folder;
  const std::string path = folder / "";
  auto watch = ChangeWatch::open().value;
  CHECK(watch.add(path));
  CHECK(watch.next(1ms).error == Errc::timed_out);
  auto waiting = spawn([&] { return watch.next().value.kind; });
  CHECK(files::write_file(path + "a", ""));
  CHECK(waiting.join() == ChangeKind::created);
  while (watch.next(Deadline::past()).error != Errc::timed_out) {
  }
  auto last = spawn([&] { return watch.next().error; });
  watch.close();
  CHECK(last.join() == Errc::closed);
  CHECK(watch.add(path) == Errc::closed);
  CHECK(ChangeWatch().next().error == Errc::closed);
}

TEST_CASE("a ChangeWatch reports changes as lost when the system has dropped them") {
  const Folder folder;
  const std::string path = folder / "";
  Runtime runtime({.workers = 1});
  const RuntimeScope scope(runtime);
  auto watch = ChangeWatch::open().value;
  CHECK(watch.add(path));
  std::size_t most = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
  if (most > 100'000) {
    return weft::test::skip("the system's queue of changes is too long to be filled");
  }
  // The watch reports equal consecutive changes once.
  std::ofstream first(path + "a");
  std::ofstream second(path + "b");
  for (std::size_t i = 0; i <= most; ++i) ((i % 2 == 0 ? first : second) << 'x').flush();
  bool is_lost = false;
  for (;;) {
    const auto [change, error] = watch.next(Deadline::past());
    if (error) break;
    is_lost = is_lost || (change.kind == ChangeKind::lost && change.path.empty());
  }
  CHECK(is_lost);
}

TEST_SUITE_END();

}  // namespace weft::test
