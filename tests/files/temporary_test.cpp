#include <weft/temporary_files.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/context.hpp>

#include "tests/files/folder.hpp"
#include "tests/support/fiber_test.hpp"

using namespace weft;
using namespace std::chrono_literals;
using files::TemporaryDirectory;
using files::TemporaryFile;
using test::Folder;

TEST_SUITE_BEGIN("files/temporary");

FIBER_TEST_CASE(
    "a temporary file is private, has a unique name, and is removed by its owner's destructor") {
  const Folder folder;
  const files::TemporaryOptions options = {
      .folder = folder.path(), .prefix = "upload-", .suffix = ".part"};
  std::set<std::string> names;
  {
    std::vector<TemporaryFile> temporary;
    for (int i = 0; i < 10; ++i) {
      auto [made, error] = TemporaryFile::create(options);
      CHECK(error == std::error_code{});
      CHECK(made.path().starts_with(folder / "upload-"));
      CHECK(made.path().ends_with(".part"));
      CHECK(files::status(made.path()).value.mode == 0600);
      CHECK(made.file().write_all("text", 0).value == 4);
      CHECK(files::read_file(made.path()).value == "text");
      names.insert(made.path());
      temporary.push_back(std::move(made));
    }
    CHECK(names.size() == 10);
    CHECK(files::list_directory(folder.path()).value.size() == 10);
    temporary.front() = std::move(temporary.back());
    CHECK(files::list_directory(folder.path()).value.size() == 9);
  }
  CHECK(files::list_directory(folder.path()).value.empty());
}

FIBER_TEST_CASE("keep_as() keeps a temporary file under the given name") {
  const Folder folder;
  CHECK(files::write_file(folder / "old", "old"));
  {
    auto temporary = TemporaryFile::create({.folder = folder.path()}).value;
    CHECK(temporary.file().write_all("new", 0).value == 3);
    CHECK(temporary.keep_as(folder / "no/such") == std::errc::no_such_file_or_directory);
    CHECK(temporary.keep_as(folder / "old"));
    CHECK(temporary.path().empty());
    CHECK(temporary.keep_as(folder / "again") == Errc::closed);
    CHECK(!TemporaryFile::create({.folder = folder.path()}).value.keep().empty());
    CHECK(!TemporaryDirectory::create({.folder = folder.path()}).value.keep().empty());
  }
  CHECK(files::read_file(folder / "old").value == "new");
  CHECK(files::list_directory(folder.path()).value.size() == 3);
}

FIBER_TEST_CASE("a temporary directory is removed with its contents, even after an exception") {
  const Folder folder;
  try {
    const auto temporary = TemporaryDirectory::create({.folder = folder.path()}).value;
    CHECK(files::status(temporary.path()).value.mode == 0700);
    CHECK(files::create_directory(temporary.path() + "/d"));
    CHECK(files::write_file(temporary.path() + "/d/file", "x"));
    throw std::runtime_error("the caller fails");
  } catch (const std::runtime_error&) {
  }
  CHECK(files::list_directory(folder.path()).value.empty());
}

FIBER_TEST_CASE("a temporary file is removed even if the caller's context has ended") {
  const Folder folder;
  {
    Context context;
    const ContextScope scope(context);
    const auto temporary = TemporaryFile::create({.folder = folder.path()}).value;
    context.cancel();
    CHECK(TemporaryFile::create({.folder = folder.path()}).error == Errc::cancelled);
  }
  CHECK(files::list_directory(folder.path()).value.empty());
}

FIBER_TEST_CASE("no temporary file remains when a deadline ends the file's creation") {
  const Folder folder;
  // The deadline passes at any moment: before the thread begins, while it makes the file, or
  // afterwards.
  for (int i = 0; i < 100; ++i) {
    const auto limit = std::chrono::microseconds(2 * i);
    const auto file = TemporaryFile::create({.folder = folder.path()}, Deadline::after(limit));
    const auto directory =
        TemporaryDirectory::create({.folder = folder.path()}, Deadline::after(limit));
    CHECK((!file.error || file.error == Errc::timed_out));
    CHECK((!directory.error || directory.error == Errc::timed_out));
  }
  // An abandoned call may not have made its file yet; its thread removes it after the call's end.
  for (auto now = files::file_group().stats(); now.running + now.waiting > 0;
       now = files::file_group().stats()) {
    std::this_thread::yield();
  }
  while (!files::list_directory(folder.path()).value.empty()) std::this_thread::yield();
}

FIBER_TEST_CASE("create() returns an error when a temporary file cannot be made") {
  const Folder folder;
  constexpr std::errc kRefused = std::errc::invalid_argument;
  CHECK(TemporaryFile::create({.folder = folder / "none"}).error ==
        std::errc::no_such_file_or_directory);
  CHECK(TemporaryFile::create({.folder = folder.path(), .prefix = "../x"}).error == kRefused);
  CHECK(TemporaryFile::create({.folder = folder.path(), .suffix = "/x"}).error == kRefused);
  CHECK(TemporaryDirectory::create({.folder = folder.path() + '\0'}).error == kRefused);
  CHECK(TemporaryFile().path().empty());
  const char* const set = std::getenv("TMPDIR");
  const std::string folder_of_environment = set != nullptr && *set != '\0' ? set : "/tmp";
  CHECK(TemporaryFile::create().value.path().starts_with(folder_of_environment));
}

TEST_SUITE_END();
