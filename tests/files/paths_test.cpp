#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <weft/files.hpp>

#include "tests/files/folder.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace std::chrono_literals;
using files::Kind;
using test::Folder;

TEST_SUITE_BEGIN("files/paths");

FIBER_TEST_CASE(
    "status() follows links and returns the kind, size, permissions and modification time of a "
    "file") {
  const Folder folder;
  const std::string file = folder / "file";
  CHECK(files::write_file(file, "12345"));
  CHECK(::chmod(file.c_str(), 0640) == 0);
  std::filesystem::create_symlink(file, folder / "link");
  std::filesystem::create_symlink(folder / "none", folder / "dangling");
  CHECK(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto [found, error] = files::status(file);
  CHECK(error == std::error_code{});
  CHECK(found.kind == Kind::file);
  CHECK(found.size == 5);
  CHECK(found.mode == 0640);
  CHECK(std::chrono::abs(std::chrono::system_clock::now() - found.modified) < 1h);
  CHECK(files::status(folder / "link").value.kind == Kind::file);
  CHECK(files::link_status(folder / "link").value.kind == Kind::symbolic_link);
  CHECK(files::link_status(folder / "dangling").value.kind == Kind::symbolic_link);
  CHECK(files::status(folder / "dangling").error == std::errc::no_such_file_or_directory);
  CHECK(files::status(folder.path()).value.kind == Kind::directory);
  CHECK(files::status(folder / "pipe").value.kind == Kind::other);
  CHECK(files::status(file + "/below").error == std::errc::not_a_directory);
}

FIBER_TEST_CASE(
    "rename() replaces files and empty directories, and refuses to replace nonempty directories") {
  const Folder folder;
  CHECK(files::write_file(folder / "a", "a"));
  CHECK(files::write_file(folder / "b", "b"));
  CHECK(files::rename(folder / "a", folder / "b"));
  CHECK(files::read_file(folder / "b").value == "a");
  CHECK(files::rename(folder / "a", folder / "c") == std::errc::no_such_file_or_directory);
  CHECK(files::create_directory(folder / "full"));
  CHECK(files::create_directory(folder / "full") == std::errc::file_exists);
  CHECK(files::write_file(folder / "full/file", "x"));
  CHECK(files::create_directory(folder / "empty"));
  CHECK(files::rename(folder / "empty", folder / "full") == std::errc::directory_not_empty);
  CHECK(files::rename(folder / "full", folder / "full/in") == std::errc::invalid_argument);
  CHECK(files::rename(folder / "b", folder / "empty") == std::errc::is_a_directory);
  CHECK(files::rename(folder / "full", folder / "b") == std::errc::not_a_directory);
  CHECK(files::rename(folder / "full", folder / "empty"));
  CHECK(files::read_file(folder / "empty/file").value == "x");
  CHECK(files::list_directory(folder.path()).value.size() == 2);
}

FIBER_TEST_CASE(
    "remove() deletes files, links and empty directories, and refuses nonempty directories") {
  const Folder folder;
  CHECK(files::write_file(folder / "file", "x"));
  CHECK(files::create_directory(folder / "full"));
  CHECK(files::write_file(folder / "full/file", "x"));
  std::filesystem::create_directory_symlink(folder / "full", folder / "link");
  CHECK(files::remove(folder / "full") == std::errc::directory_not_empty);
  CHECK(files::remove(folder / "none") == std::errc::no_such_file_or_directory);
  CHECK(files::remove(folder / "file/below") == std::errc::not_a_directory);
  CHECK(files::remove(folder / "link"));
  CHECK(files::remove(folder / "file"));
  CHECK(files::remove(folder / "full/file"));
  CHECK(files::remove(folder / "full"));
  CHECK(files::list_directory(folder.path()).value.empty());
}

FIBER_TEST_CASE("remove_all() removes a directory tree of any depth without following links") {
  const Folder folder;
  CHECK(files::create_directory(folder / "kept"));
  CHECK(files::write_file(folder / "kept/file", "x"));
  std::string deep = folder / "tree";
  for (int i = 0; i < 100; ++i) {
    CHECK(files::create_directory(deep));
    CHECK(files::write_file(deep + "/file", "x"));
    deep += "/d";
  }
  std::filesystem::create_directory_symlink(folder / "kept", folder / "tree/d/link");
  std::filesystem::create_symlink(folder / "none", folder / "tree/dangling");
  CHECK(::mkfifo((folder / "tree/pipe").c_str(), 0600) == 0);
  CHECK(files::remove_all(folder / "tree"));
  CHECK(files::remove_all(folder / "tree"));
  CHECK(files::status(folder / "tree").error == std::errc::no_such_file_or_directory);
  CHECK(files::read_file(folder / "kept/file").value == "x");
  CHECK(files::remove_all(folder / "kept/file"));
  CHECK(files::remove_all(folder / "kept/file/below"));
  CHECK(files::list_directory(folder / "kept").value.empty());
}

FIBER_TEST_CASE(
    "remove_all() stays inside the tree when a link replaces a directory during the removal") {
  const Folder folder;
  const std::string link = folder / "link";
  CHECK(files::create_directory(folder / "outside"));
  CHECK(files::write_file(folder / "outside/file", "x"));
  std::atomic<bool> ended{false};
  std::atomic<int> exchanges{0};
  // Repeatedly exchanges the directory with the link.
  std::thread other([&, inner = folder / "tree/d"] {
    while (!ended) {
      if (::renameat2(AT_FDCWD, inner.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE) == 0) {
        ++exchanges;
      } else if (errno == EINVAL || errno == ENOSYS) {
        exchanges += 1000;  // The file system cannot exchange them.
      }
    }
  });
  for (int i = 0; i < 20 || exchanges < 100; ++i) {
    (void)files::remove_all(link);
    CHECK(files::create_directory(folder / "tree"));
    CHECK(files::create_directory(folder / "tree/d"));
    std::filesystem::create_directory_symlink(folder / "outside", link);
    while (!files::remove_all(folder / "tree")) continue;
    CHECK(files::read_file(folder / "outside/file").value == "x");
  }
  ended = true;
  other.join();
}

FIBER_TEST_CASE(
    "path functions refuse paths with zero bytes, and do nothing after their deadline or stop "
    "request") {
  const Folder folder;
  const std::string file = folder / "file";
  CHECK(files::write_file(file, "x"));
  const std::string cut = file + '\0' + ".txt";
  constexpr std::errc kRefused = std::errc::invalid_argument;
  CHECK(files::status(cut).error == kRefused);
  CHECK(files::link_status(cut).error == kRefused);
  CHECK(files::rename(cut, folder / "b") == kRefused);
  CHECK(files::rename(file, cut) == kRefused);
  CHECK(files::remove(cut) == kRefused);
  CHECK(files::remove_all(cut) == kRefused);
  CHECK(files::create_directory(cut) == kRefused);
  std::stop_source stop;
  (void)stop.request_stop();
  CHECK(files::status(file, stop.get_token()).error == Errc::cancelled);
  CHECK(files::rename(file, folder / "b", stop.get_token()) == Errc::cancelled);
  CHECK(files::remove(file, stop.get_token()) == Errc::cancelled);
  CHECK(files::remove_all(file, stop.get_token()) == Errc::cancelled);
  CHECK(files::create_directory(folder / "d", stop.get_token()) == Errc::cancelled);
  CHECK(files::list_directory(folder.path()).value.size() == 1);
}

TEST_SUITE_END();
