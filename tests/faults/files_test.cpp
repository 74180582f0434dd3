// Tests faults while files are opened, read, written and replaced, and directories are walked.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <weft/files.hpp>
#include <weft/temporary_files.hpp>

#include "tests/faults/sweep.hpp"
#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("faults/files");

namespace {

using weft::files::File;
using weft::test::Call;
using weft::test::demand;
using weft::test::expect_none;
using weft::test::kShort;
using weft::test::sweep_in_runtime;

// Provides a folder to work in, whose own calls never fail. The scenario runs in a separate
// process.
class Folder {
 public:
  Folder() { demand(::mkdtemp(path_) != nullptr && ::chdir(path_) == 0, "there is a folder"); }
  ~Folder() {
    for (const char* name :
         {"parts/file", "parts/link", "new/file", "new/link", "old/file", "old", "parts", "new"}) {
      std::remove(name);
    }
    demand(::chdir("/") == 0 && std::remove(path_) == 0, "nothing else is left in the folder");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  char path_[32] = "/tmp/weft_faults_XXXXXX";
};

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void read_and_write() {
  const Folder folder;
  const std::string text = "what is written is read again";
  expect_none(weft::files::write_file("old", text));
  auto [file, unopened] =
      File::open("parts", {.access = weft::files::Access::read_write, .create = true});
  expect_none(unopened);
  expect_none(file.write_all(bytes(text), 3).error);
  expect_none(file.sync());
  std::string part(text.size(), '\0');
  expect_none(file.read_exactly(std::as_writable_bytes(std::span(part)), 3).error);
  demand(part == text, "a part is what was written there");
  const auto [size, unknown] = file.size();
  expect_none(unknown);
  demand(size == text.size() + 3, "the size is that of what was written");
  const auto [whole, unread] = weft::files::read_file("old");
  expect_none(unread);
  demand(whole == text, "a file is what was written");
}
TEST_CASE("files are read and written, or an error is returned, when a system call fails") {
  sweep_in_runtime(&read_and_write, {{Call::open_file, EMFILE},
                                     {Call::open_file, EINTR},
                                     {Call::open_file, ENOSYS},
                                     {Call::get_status, EIO},
                                     {Call::write_file, ENOSPC},
                                     {Call::write_file, kShort, 20},
                                     {Call::read_at, EIO},
                                     {Call::read_at, EINTR, 2},
                                     {Call::read_at, EAGAIN},
                                     {Call::read_at, EOPNOTSUPP},
                                     {Call::read_at, kShort, 40},
                                     {Call::write_at, EIO},
                                     {Call::write_at, ENOSPC},
                                     {Call::write_at, EOPNOTSUPP},
                                     {Call::write_at, kShort, 40},
                                     {Call::sync_file, EIO},
                                     {Call::close_file, EINTR}});
}
TEST_CASE("a file call returns an error when an allocation fails or no thread can be started") {
  sweep_in_runtime(&read_and_write, {{Call::allocate, ENOMEM}, {Call::start_thread, EAGAIN}});
}

// Checks that a reader finds the old text or the new text.
void replace() {
  const Folder folder;
  const std::string old = "old";
  expect_none(weft::files::write_file("old", old));
  std::error_code failed;
  try {
    failed = weft::files::replace_file("old", "the new text");
  } catch (const std::bad_alloc&) {
    failed = std::make_error_code(std::errc::not_enough_memory);
  }
  const auto [found, unread] = weft::files::read_file("old");
  expect_none(unread);
  demand(found == (failed ? old : "the new text"), "it is replaced as a whole, or not at all");
  expect_none(failed);
}
TEST_CASE("a file is replaced completely or stays unchanged when a system call fails") {
  sweep_in_runtime(&replace,
                   {{Call::open_file, EMFILE},
                    {Call::write_file, ENOSPC},
                    {Call::write_file, kShort, 20},
                    {Call::get_status, EACCES},
                    {Call::sync_file, EIO},
                    {Call::rename_file, EXDEV},
                    {Call::start_thread, EAGAIN},
                    {Call::allocate, ENOMEM}},
                   {std::make_error_code(std::errc::not_enough_memory)});
}

// Creates a directory, and a link to it in a directory that the test removes.
class Linked {
 public:
  Linked() {
    expect_none(weft::files::create_directory("old"));
    expect_none(weft::files::write_file("old/file", "x"));
  }
  ~Linked() { demand(::access("old/file", F_OK) == 0, "nothing behind a link is removed"); }
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;
};

void change_names() {
  const Folder folder;
  const Linked linked;
  expect_none(weft::files::create_directory("new"));
  demand(::symlink("../old", "new/link") == 0, "there is a link");
  expect_none(weft::files::write_file("new/file", "x"));
  expect_none(weft::files::rename("new", "parts"));
  const auto [found, unknown] = weft::files::status("parts/file");
  expect_none(unknown);
  demand(found.size == 1, "a directory is renamed with its files");
  expect_none(weft::files::remove("parts/file"));
  expect_none(weft::files::write_file("parts/file", "y"));
  expect_none(weft::files::remove_all("parts"));
  demand(weft::files::list_directory(".").value.size() <= 1, "all else is removed");
}
TEST_CASE("paths are renamed and removed, or an error is returned, when a system call fails") {
  sweep_in_runtime(&change_names, {{Call::make_directory, ENOSPC},
                                   {Call::rename_file, EXDEV},
                                   {Call::get_status, EIO},
                                   {Call::remove_file, EIO},
                                   {Call::remove_file, EPERM},
                                   {Call::remove_file, EINTR},
                                   {Call::open_directory, EMFILE},
                                   {Call::read_directory, EIO},
                                   {Call::start_thread, EAGAIN},
                                   {Call::allocate, ENOMEM}});
}

// Whatever fails, the folder has nothing in it afterwards, as its destructor checks.
void make_temporary() {
  const Folder folder;
  auto [file, unmade] = weft::files::TemporaryFile::create({.folder = "."});
  expect_none(unmade);
  expect_none(file.file().write_all("text", 0).error);
  const auto [directory, missing] = weft::files::TemporaryDirectory::create({.folder = "."});
  expect_none(missing);
  expect_none(weft::files::write_file(directory.path() + "/file", "x"));
  expect_none(file.keep_as("new"));
  demand(weft::files::read_file("new").value == "text", "a file that is kept has its bytes");
}
TEST_CASE("temporary files are removed when any system call fails") {
  sweep_in_runtime(&make_temporary, {{Call::open_file, EMFILE},
                                     {Call::open_file, EEXIST},
                                     {Call::make_directory, ENOSPC},
                                     {Call::make_directory, EEXIST},
                                     {Call::write_at, ENOSPC},
                                     {Call::rename_file, EXDEV},
                                     {Call::start_thread, EAGAIN},
                                     {Call::allocate, ENOMEM}});
}

void walk() {
  const Folder folder;
  // System calls create the files, so that the walk starts the first thread.
  for (const char* name : {"new", "old"}) ::close(::open(name, O_CREAT | O_WRONLY, 0600));
  weft::files::Walk walk(".");
  std::string names;
  for (;;) {
    const auto [entry, error] = walk.next();
    if (error == std::errc::resource_unavailable_try_again) {
      demand(!entry, "a directory is not skipped because the system refuses a thread");
      continue;
    }
    expect_none(error);
    if (!entry) break;
    names += entry->path;
  }
  demand(names == "./new./old", "a walk comes by all files");
}
TEST_CASE("a directory walk completes or returns an error when a call fails") {
  sweep_in_runtime(&walk, {{Call::open_directory, EMFILE},
                           {Call::read_directory, EIO},
                           {Call::get_status, EIO},
                           {Call::start_thread, EAGAIN},
                           {Call::allocate, ENOMEM}});
}

}  // namespace

TEST_SUITE_END();
