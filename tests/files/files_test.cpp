#include <weft/files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/event.hpp>
#include <weft/go.hpp>
#include <weft/latch.hpp>

#include "files/page_cache.hpp"
#include "tests/files/folder.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace std::chrono_literals;
using files::Access;
using files::File;
using files::Kind;
using test::bytes;
using test::Folder;

TEST_SUITE_BEGIN("files/files");

namespace {

std::string some_text(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 7 % 25);
  return text;
}

std::string read_through(const File& opened) {
  File file = opened;
  std::string text(file.size().value, '\0');
  CHECK(file.read_exactly(std::as_writable_bytes(std::span(text)), 0).value == text.size());
  return text;
}

}  // namespace

FIBER_TEST_CASE(
    "appends by several callers do not overlap, and append() fails without the append option") {
  const Folder folder;
  const std::string line(1000, 'x');
  CHECK(files::write_file(folder / "log", "begin\n"));
  std::vector<JoinHandle<void>> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(spawn([&, i] {
      auto log = File::open(folder / "log", {.access = Access::write, .append = true}).value;
      for (int k = 0; k < 5; ++k) {
        const std::string text = line + std::to_string(i) + "\n";
        CHECK(log.append(text).value == text.size());
      }
    }));
  }
  for (auto& writer : writers) writer.join();
  const std::string text = files::read_file(folder / "log").value;
  CHECK(text.size() == 6 + 20 * 1002);
  CHECK(text.starts_with("begin\n"));
  for (std::size_t at = 6; at < text.size(); at += 1002) {
    CHECK(text.compare(at, 1000, line) == 0);
    CHECK(text[at + 1001] == '\n');
  }
  auto plain = File::open(folder / "log", {.access = Access::write}).value;
  CHECK(plain.append("x").error == std::errc::invalid_argument);
  CHECK(File().append("x").error == Errc::closed);
}

FIBER_TEST_CASE("data written to a file can be read back, as a whole and in parts at any offset") {
  const Folder folder;
  const std::string text = some_text(3'000'000);
  CHECK(files::write_file(folder / "whole", text));
  CHECK(files::read_file(folder / "whole").value == text);
  CHECK(files::read_file(folder / "whole", text.size()).value == text);
  CHECK(files::read_file(folder / "whole", text.size() - 1).error == std::errc::file_too_large);
  CHECK(files::write_file(folder / "whole", "short"));
  CHECK(files::read_file(folder / "whole").value == "short");
  auto [file, error] = File::open(folder / "parts", {.access = Access::read_write, .create = true});
  CHECK(error == std::error_code{});
  CHECK(file.write_all(bytes(text), 100).value == text.size());
  CHECK(file.write_all(bytes("begin"), 0).value == 5);
  CHECK(file.sync());
  CHECK(file.size().value == 100 + text.size());
  CHECK(read_through(file) == "begin" + std::string(95, '\0') + text);
  std::array<std::byte, 8> buffer;
  CHECK(file.read_some(buffer, 100 + text.size()).error == Errc::end_of_stream);
  CHECK(file.read_exactly(buffer, 97 + text.size()).value == 3);
  CHECK(file.read_some({}, 0).value == 0);
  // Offsets that no file reaches, some of which the system would misinterpret.
  for (const std::uint64_t far : {std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
    CHECK(file.read_some(buffer, far).error == Errc::end_of_stream);
    CHECK(file.write_all(bytes("x"), far).error == std::errc::file_too_large);
  }
  CHECK(file.size().value == 100 + text.size());
  // Files in /proc report a size of 0.
  CHECK(files::read_file("/proc/self/stat").value.starts_with(std::to_string(::getpid())));
}

FIBER_TEST_CASE(
    "replace_file() replaces a file completely, keeps its permissions and leaves no temporary "
    "file") {
  const Folder folder;
  CHECK(files::replace_file(folder / "config", "first"));
  CHECK(::chmod((folder / "config").c_str(), 0600) == 0);
  auto [old, error] = File::open(folder / "config");
  CHECK(error == std::error_code{});
  CHECK(files::replace_file(folder / "config", "second"));
  CHECK(read_through(old) == "first");
  CHECK(files::read_file(folder / "config").value == "second");
  struct stat found {};
  CHECK(::stat((folder / "config").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  CHECK(files::list_directory(folder.path()).value.size() == 1);
  CHECK(files::replace_file(folder / "no/such", "x") == std::errc::no_such_file_or_directory);
  // A file with the longest possible name, and a link, which is itself replaced.
  const std::string longest = folder / std::string(255, 'n');
  CHECK(files::write_file(longest, "old"));
  CHECK(files::replace_file(longest, "new"));
  CHECK(files::read_file(longest).value == "new");
  std::filesystem::create_symlink(longest, folder / "link");
  CHECK(files::replace_file(folder / "link", "third"));
  CHECK(files::read_file(longest).value == "new");
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / "link")));
}

FIBER_TEST_CASE(
    "a file that only its owner may read stays private while replace_file() replaces the file") {
  const Folder folder;
  const std::string secret = folder / "secret";
  CHECK(files::write_file(secret, "old"));
  CHECK(::chmod(secret.c_str(), 0600) == 0);
  const bool may_give = ::chown(secret.c_str(), 12345, 12346) == 0;
  std::atomic<int> seen{0};
  std::atomic<bool> ended{false};
  std::thread spy([&] {
    while (!ended) {
      std::error_code gone;
      for (std::filesystem::directory_iterator each(folder.path(), gone), end; each != end;
           each.increment(gone)) {
        struct stat found {};
        if (::stat(each->path().c_str(), &found) != 0) continue;
        if (each->path() != secret) ++seen;
        CHECK((found.st_mode & 0777) == 0600);
      }
    }
  });
  const std::string text = some_text(1 << 20);
  for (int i = 0; i < 20 || seen == 0; ++i) CHECK(files::replace_file(secret, text));
  ended = true;
  spy.join();
  struct stat found {};
  CHECK(::stat(secret.c_str(), &found) == 0);
  if (may_give) CHECK((found.st_uid == 12345 && found.st_gid == 12346));
}

FIBER_TEST_CASE("opening a FIFO by path fails at once and occupies no thread") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  CHECK(::mkfifo(pipe.c_str(), 0600) == 0);
  // Makes more calls than there are threads.
  for (int i = 0; i < 20; ++i) {
    CHECK(files::write_file(pipe, "x") == std::errc::operation_not_supported);
  }
  CHECK(File::open(pipe, {.access = Access::write}).error == std::errc::operation_not_supported);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(files::write_file(pipe, "x") == std::errc::operation_not_supported);
  CHECK(files::write_file(folder.path(), "x") == std::errc::is_a_directory);
  CHECK(files::write_file(folder / "other", "x"));
}

FIBER_TEST_CASE(
    "replace_file() refuses pipes, sockets, devices and directories, and leaves them unchanged") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  const std::string socket = folder / "socket";
  CHECK(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(::mknod(socket.c_str(), S_IFSOCK | 0600, 0) == 0);
  std::filesystem::create_directory(folder / "directory");
  // A link leads to the device, so that the test does not risk the machine's own entry.
  std::filesystem::create_symlink("/dev/null", folder / "device");
  constexpr std::errc kRefused = std::errc::operation_not_supported;
  CHECK(files::replace_file(pipe, "x") == kRefused);
  CHECK(files::replace_file(socket, "x") == kRefused);
  CHECK(files::replace_file(folder / "device", "x") == kRefused);
  CHECK(files::replace_file(folder / "directory", "x") == std::errc::is_a_directory);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::filesystem::is_socket(socket));
  CHECK(std::filesystem::is_symlink(folder / "device"));
  CHECK(std::filesystem::is_directory(folder / "directory"));
  CHECK(files::list_directory(folder.path()).value.size() == 4);
}

FIBER_TEST_CASE("file functions refuse a path that contains a zero byte") {
  const Folder folder;
  CHECK(files::write_file(folder / "file", "x"));
  const std::string cut = (folder / "file") + '\0' + ".txt";
  constexpr std::errc kRefused = std::errc::invalid_argument;
  CHECK(File::open(cut).error == kRefused);
  CHECK(File::open(cut, {.access = Access::write, .create = true}).error == kRefused);
  CHECK(files::read_file(cut).error == kRefused);
  CHECK(files::write_file(cut, "y") == kRefused);
  CHECK(files::replace_file(cut, "y") == kRefused);
  CHECK(files::list_directory(folder.path() + '\0').error == kRefused);
  CHECK(files::Walk(folder.path() + '\0').next().error == kRefused);
  CHECK(files::read_file(folder / "file").value == "x");
}

FIBER_TEST_CASE("reading a file that is larger than memory returns an error") {
  std::string path = "/dev/shm/weft_files_XXXXXX";
  const Descriptor file(::mkstemp(path.data()));
  // Runs only if the file system supports such a file.
  if (file && ::ftruncate(file.get(), std::numeric_limits<off_t>::max()) == 0) {
    CHECK(files::read_file(path).error == std::errc::file_too_large);
    CHECK(files::read_file(path, 10).error == std::errc::file_too_large);
  }
  ::unlink(path.c_str());
}

FIBER_TEST_CASE(
    "a failed open returns the error, and an open of a directory or pipe fails without waiting") {
  const Folder folder;
  CHECK(File::open(folder / "nothing").error == std::errc::no_such_file_or_directory);
  CHECK(files::read_file(folder / "nothing").error == std::errc::no_such_file_or_directory);
  CHECK(File::open(folder.path()).error == std::errc::is_a_directory);
  CHECK(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(File::open(folder / "pipe").error == std::errc::operation_not_supported);
  CHECK(files::write_file(folder / "there", "x"));
  CHECK(File::open(folder / "there", {.access = Access::write, .create = true, .exclusive = true})
            .error == std::errc::file_exists);
  CHECK(!File::open(folder / "there", {.access = Access::write, .truncate = true}).error);
  CHECK(files::read_file(folder / "there").value.empty());
  std::array<std::byte, 1> buffer;
  CHECK(File().read_some(buffer, 0).error == Errc::closed);
  CHECK(File().size().error == Errc::closed);
}

FIBER_TEST_CASE(
    "a deadline or a stop request ends a wait for a file thread, but cached reads need no thread") {
  const Folder folder;
  CHECK(files::write_file(folder / "file", "in memory"));
  auto [file, error] = File::open(folder / "file");
  CHECK(error == std::error_code{});
  const bool is_immediate = [&file = file] {
    const std::uint64_t before = files::file_group().stats().finished;
    CHECK(read_through(file) == "in memory");
    return files::file_group().stats().finished == before;
  }();
  // Occupies all threads.
  Event goes_on;
  Latch taken(16);
  std::vector<JoinHandle<void>> takers;
  for (int i = 0; i < 16; ++i) {
    takers.push_back(spawn([&] {
      CHECK(!files::file_group()
                 .run([&taken, &goes_on] {
                   taken.count_down();
                   goes_on.wait();
                 })
                 .error);
    }));
  }
  taken.wait();
  CHECK(files::write_file(folder / "file", "late", Deadline::after(1ms)) == Errc::timed_out);
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK(files::list_directory(folder.path(), stop.get_token()).error == Errc::cancelled);
  CHECK(files::replace_file(folder / "file", "late", stop.get_token()) == Errc::cancelled);
  CHECK(files::replace_file(folder / "file", "late", Deadline::after(1ms)) == Errc::timed_out);
  CHECK(file.sync(stop.get_token()) == Errc::cancelled);
  CHECK(file.sync(Deadline::after(1ms)) == Errc::timed_out);
  files::Walk walk(folder.path());
  CHECK(walk.next(stop.get_token()).error == Errc::cancelled);
  CHECK(walk.next(Deadline::past()).error == Errc::timed_out);
  // Not every file system reports which bytes it has in memory.
  if (is_immediate) {
    std::string text(9, '\0');
    const auto read = [&, &opened = file] {
      const auto room = std::as_writable_bytes(std::span(text));
      return opened.read_exactly(room, 0, Deadline::past()).error;
    };
    // If the system has dropped the bytes from memory meanwhile, the test reads them again, without
    // the threads.
    while (read() == Errc::timed_out) {
      std::string again;
      std::ifstream(folder / "file") >> again;
    }
    CHECK(text == "in memory");
  }
  goes_on.set();
  for (auto& taker : takers) taker.join();
  CHECK(walk.next().value->path == folder / "file");
  CHECK(files::read_file(folder / "file").value == "in memory");
}

FIBER_TEST_CASE("reading a partly cached range of a file uses a file thread") {
  const Folder folder;
  constexpr std::size_t kSize = 256 * 1024;
  CHECK(files::write_file(folder / "file", some_text(kSize)));
  const Descriptor file(::open((folder / "file").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(::fsync(file.get()) == 0);
  (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
  std::array<std::byte, 1> byte;
  CHECK(::pread(file.get(), byte.data(), 1, 0) == 1);
  CHECK(::pread(file.get(), byte.data(), 1, kSize - 1) == 1);
  const auto holds = [&](std::uint64_t offset) {
    return !files::read_now(file.get(), byte, offset).would_wait();
  };
  // File systems may hold more bytes in memory, or may not report which.
  if (holds(0) && holds(kSize - 1) && !holds(kSize / 2)) {
    CHECK(!files::is_cached_hint(file.get(), 0, kSize));
  }
  CHECK(!files::bring_in(file.get(), 0, kSize, {}));
  // Repeats if the system has dropped some bytes from memory meanwhile.
  while (holds(0) && !files::is_cached_hint(file.get(), 0, kSize)) {
    CHECK(!files::bring_in(file.get(), 0, kSize, {}));
  }
  if (holds(0)) CHECK(files::is_cached_hint(file.get(), 10 * kSize, kSize));
}

FIBER_TEST_CASE("a directory walk returns all entries in order and follows no links") {
  const Folder folder;
  std::filesystem::create_directories(folder / "b/inner");
  std::filesystem::create_directories(folder / "skipped");
  for (const char* name : {"a", "b/2", "b/1", "b/inner/x", "c", "skipped/y"}) {
    CHECK(files::write_file(folder / name, name));
  }
  std::filesystem::create_directory_symlink(folder / "b", folder / "link");
  files::Walk walk(folder.path());
  std::vector<std::string> seen;
  for (;;) {
    auto [entry, error] = walk.next();
    CHECK(error == std::error_code{});
    if (!entry) break;
    seen.push_back(entry->path.substr(folder.path().size() + 1));
    if (seen.back() == "skipped") walk.skip();
    CHECK((entry->kind == Kind::symbolic_link) == (seen.back() == "link"));
    CHECK((entry->kind == Kind::directory) ==
          (seen.back() == "b" || seen.back() == "b/inner" || seen.back() == "skipped"));
  }
  CHECK(seen == std::vector<std::string>{"a", "b", "b/1", "b/2", "b/inner", "b/inner/x", "c",
                                         "link", "skipped"});
  CHECK(!walk.next().value);
  files::Walk nowhere(folder / "none");
  const auto [entry, error] = nowhere.next();
  CHECK(error == std::errc::no_such_file_or_directory);
  CHECK(entry->path == folder / "none");
  CHECK(!nowhere.next().value);
}

TEST_CASE("plain threads read and write files without a runtime") {
  const test::TestGuard guard("plain threads use files without a runtime");
  const Folder folder;
  CHECK(files::write_file(folder / "plain", "thread"));
  CHECK(files::read_file(folder / "plain").value == "thread");
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK(files::write_file(folder / "plain", "late", stop.get_token()) == Errc::cancelled);
  CHECK(files::write_file(folder / "plain", "late", Deadline::past()) == Errc::timed_out);
}

TEST_SUITE_END();
