#include <chrono>
#include <set>
#include <span>
#include <string>
#include <vector>
#include <weft/files.hpp>
#include <weft/go.hpp>
#include <weft/net/unix_stream.hpp>
#include <weft/sim.hpp>
#include <weft/temporary_files.hpp>
#include <weft/this_fiber.hpp>

#include "tests/support/fiber_test.hpp"

TEST_SUITE_BEGIN("sim/files");

using namespace std::chrono_literals;
namespace files = weft::files;
namespace sim = weft::sim;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Appends numbers to /log. The test records each number once it is synced.
void append_numbers(std::vector<int>& synced) {
  auto [file, error] =
      files::File::open("/log", {.access = files::Access::read_write, .create = true});
  sim::check(!error, "the log is opened");
  for (int number = 0;; ++number) {
    const std::uint64_t end = file.size().value;
    sim::check(!file.write_all(bytes_of(std::to_string(number) + '\n'), end).error, "is written");
    if (file.sync()) synced.push_back(number);
    weft::this_fiber::sleep_for(1ms);
  }
}

}  // namespace

TEST_CASE("a simulated host has its own files and sees no file of the system") {
  const weft::test::TestGuard guard("the files of a host are its own");
  sim::explore({.seeds = 3}, [](sim::World& world) {
    world.put_file("world", "/etc/name", "world");
    world.host("other", [] {
      CHECK(files::read_file("/etc/name").error == std::errc::no_such_file_or_directory);
      CHECK(files::write_file("/etc/name", "other"));
      CHECK(files::read_file("etc/../etc/name").value == "other");
    });
    world.run_for(1s);
    CHECK(files::read_file("/etc/name").value == "world");
    CHECK(world.file("other", "/etc/name") == "other");
    CHECK(files::read_file("/proc/self/stat").error == std::errc::no_such_file_or_directory);
  });
}

TEST_CASE(
    "simulated files are opened, replaced and listed like real files, and calls fail with the same "
    "errors") {
  const weft::test::TestGuard guard("simulated files are as real ones");
  sim::explore({.seeds = 3}, [](sim::World& world) {
    CHECK(files::write_file("/a/one", "1"));
    CHECK(files::replace_file("/a/one", "first"));
    CHECK(files::replace_file("/a/b/two", "second"));
    CHECK(files::read_file("/a").error == std::errc::is_a_directory);
    CHECK(files::replace_file("/a", "") == std::errc::is_a_directory);
    CHECK(files::read_file("/a/one/two").error == std::errc::not_a_directory);
    const auto made = files::File::open(
        "/a/one", {.access = files::Access::write, .create = true, .exclusive = true});
    CHECK(made.error == std::errc::file_exists);
    auto walk = files::Walk("/");
    std::string told;
    for (auto entry = walk.next(); entry.value; entry = walk.next()) {
      told += entry.value->path + ' ';
    }
    CHECK(told == "/a /a/b /a/b/two /a/one ");
    auto [file, error] = files::File::open("/a/one");
    CHECK(!error);
    CHECK(file.write_all(bytes_of("x"), 0).error == std::errc::bad_file_descriptor);
    CHECK(file.size().value == 5);
    world.limit_disk("world", 100);
    CHECK(files::write_file("/big", std::string(200, 'x')) == std::errc::no_space_on_device);
  });
}

TEST_CASE("simulated paths are renamed, removed and described like real paths") {
  const weft::test::TestGuard guard("simulated paths are as real ones");
  sim::explore({.seeds = 3}, [](sim::World&) {
    CHECK(files::create_directory("/d"));
    CHECK(files::create_directory("/d") == std::errc::file_exists);
    CHECK(files::status("/d").value.kind == files::Kind::directory);
    CHECK(files::list_directory("/d").value.empty());
    CHECK(files::write_file("/d/e/file", "12"));
    CHECK(files::write_file("/d/e-f", ""));
    CHECK(files::create_directory("/d/e") == std::errc::file_exists);
    CHECK(files::create_directory("/d/e-f/g") == std::errc::not_a_directory);
    CHECK(files::list_directory("/d").value.size() == 2);
    CHECK(files::status("/d/e/file").value.size == 2);
    CHECK(files::link_status("/d/none").error == std::errc::no_such_file_or_directory);
    CHECK(files::rename("/d", "/d/in") == std::errc::invalid_argument);
    CHECK(files::rename("/d", "/d/e-f") == std::errc::invalid_argument);
    CHECK(files::rename("/d/e", "/d/e-f") == std::errc::not_a_directory);
    CHECK(files::rename("/d/e-f", "/d/e") == std::errc::is_a_directory);
    CHECK(files::create_directory("/to"));
    CHECK(files::rename("/d", "/to"));
    CHECK(files::read_file("/to/e/file").value == "12");
    CHECK(files::status("/d").error == std::errc::no_such_file_or_directory);
    CHECK(files::remove("/to") == std::errc::directory_not_empty);
    CHECK(files::remove("/to/e/file"));
    CHECK(files::remove_all("/to"));
    CHECK(files::remove_all("/to"));
    CHECK(files::list_directory("/").value.empty());
    {
      auto file = files::TemporaryFile::create().value;
      const auto directory = files::TemporaryDirectory::create({.folder = "/t"}).value;
      CHECK(file.path() == "/tmp/weft-0");
      CHECK(file.file().write_all("text", 0).value == 4);
      CHECK(file.keep_as(directory.path() + "/kept"));
      CHECK(files::read_file("/t/weft-0/kept").value == "text");
    }
    CHECK(files::list_directory("/").value.empty());
  });
}

TEST_CASE(
    "a simulated power cut leaves a renamed directory complete, under its old or its new name") {
  const weft::test::TestGuard guard("a power cut leaves a renamed directory whole");
  std::set<bool> is_renamed;
  sim::explore({.seeds = 50}, [&](sim::World& world) {
    world.host("store", [] { CHECK(files::rename("/old", "/new")); });
    world.put_file("store", "/old/a", "a");
    world.put_file("store", "/old/b", "b");
    world.run_for(1ms);
    world.power_off("store");
    const bool has_new = world.file("store", "/new/a").has_value();
    const std::string left = has_new ? "/new" : "/old";
    sim::check(world.file("store", left + "/a") == "a", "a file is there");
    sim::check(world.file("store", left + "/b") == "b", "so is the other one");
    is_renamed.insert(has_new);
  });
  CHECK(is_renamed.size() == 2);
}

TEST_CASE("a simulated power cut loses no synced data, and may lose data that was not synced") {
  const weft::test::TestGuard guard("a power cut loses nothing that was synced");
  std::set<bool> kept_more;
  sim::explore({.seeds = 100}, [&](sim::World& world) {
    std::vector<int> synced;
    world.host("store", [&] { append_numbers(synced); });
    world.run_for(std::chrono::microseconds(10'000 + sim::random(30'000)));
    world.power_off("store");
    const std::string left = world.file("store", "/log").value_or("");
    std::string expected;
    for (const int number : synced) expected += std::to_string(number) + '\n';
    sim::check(left.starts_with(expected), "what was synced is on the disk");
    kept_more.insert(left.size() > expected.size());
  });
  CHECK(kept_more.size() == 2);
}

TEST_CASE("a fiber of a simulated host can restart its own host or replace its disk") {
  const weft::test::TestGuard guard("a fiber restarts its own host");
  sim::explore({.seeds = 20}, [](sim::World& world) {
    std::vector<std::string> found;
    world.host("store", [&] {
      found.push_back(files::read_file("/state").value);
      (void)files::write_file("/state", "written");
      if (found.size() == 1) world.restart("store");
      if (found.size() == 2) world.replace_disk("store");
      CHECK(found.size() == 3);
    });
    world.run_for(1s);
    CHECK_FALSE(world.is_up("store"));
    CHECK(found == std::vector<std::string>{"", "written"});
    world.restart("store");
    world.run_for(1s);
    CHECK(found == std::vector<std::string>{"", "written", ""});
  });
}

TEST_CASE("a crash of a simulated process loses no written data, and a new disk is empty") {
  const weft::test::TestGuard guard("a crash of a process loses nothing that it wrote");
  sim::explore({.seeds = 20}, [](sim::World& world) {
    int starts = 0;
    std::string found;
    world.host("store", [&] {
      found = files::read_file("/state").value;
      (void)files::write_file("/state", std::to_string(++starts));
    });
    world.run_for(1s);
    world.crash("store");
    world.restart("store");
    world.run_for(1s);
    CHECK(found == "1");
    world.replace_disk("store");
    world.restart("store");
    world.run_for(1s);
    CHECK(found.empty());
    CHECK(world.file("store", "/state") == "3");
  });
}

TEST_CASE(
    "after a simulated power cut, a replaced file has old or new contents, but a rewritten file "
    "may be mixed") {
  const weft::test::TestGuard guard("a replaced file is the old one or the new one");
  const std::string before(20'000, 'a');
  const std::string after(30'000, 'b');
  std::set<std::string> replaced;
  std::set<std::string> rewritten;
  sim::explore({.seeds = 200}, [&](sim::World& world) {
    world.host("store", [&] { (void)files::replace_file("/state", after); });
    world.host("careless", [&] { (void)files::write_file("/state", after); });
    world.put_file("store", "/state", before);
    world.put_file("careless", "/state", before);
    world.run_for(std::chrono::microseconds(sim::random(6'000)));
    world.power_off("store");
    world.power_off("careless");
    replaced.insert(world.file("store", "/state").value_or("none"));
    rewritten.insert(world.file("careless", "/state").value_or("none"));
  });
  CHECK(replaced == std::set<std::string>{before, after});
  CHECK(rewritten.size() > 2);
}

TEST_CASE("a file rewritten without a sync is empty after some simulated power cuts") {
  const weft::test::TestGuard guard("a file that is written again may be empty");
  const auto body = [](sim::World& world) {
    world.host("store", [] {
      for (int i = 0; i < 10; ++i) {
        auto [file, error] = files::File::open(
            "/new", {.access = files::Access::write, .create = true, .truncate = true});
        (void)file.write_all(bytes_of("all"), 0);
        weft::this_fiber::sleep_for(1ms);
      }
    });
    world.run_for(5ms);
    world.power_off("store");
    const auto left = world.file("store", "/new");
    sim::check(!left || *left == "all", "the file is whole");
  };
  CHECK_THROWS_AS(sim::explore({.seeds = 100, .shrinks = false}, body), sim::Failure);
}

TEST_CASE("World::disturb() cuts the power, and every run with the same seed loses the same data") {
  const weft::test::TestGuard guard("disturb() cuts power");
  (void)sim::check_determinism({.seeds = 20}, [](sim::World& world) {
    std::vector<int> synced;
    world.host("store", [&] { append_numbers(synced); });
    world.disturb({.power_cuts = 5, .within = 100ms, .shortest = 1ms, .longest = 10ms});
    world.run_for(200ms);
    sim::note(world.file("store", "/log").value_or("none"));
  });
}

TEST_CASE("a simulated file can be sent over a simulated stream") {
  const weft::test::TestGuard guard("a simulated file is sent on a simulated stream");
  sim::explore({.seeds = 5}, [](sim::World& world) {
    const std::string text(100'000, 'f');
    world.put_file("world", "/page", text);
    auto [ends, error] = weft::net::UnixStream::pair();
    CHECK(!error);
    auto reader = weft::spawn([&text, &peer = ends.second] {
      std::string got(text.size(), ' ');
      CHECK(!peer.read_exactly(std::as_writable_bytes(std::span(got))).error);
      return got;
    });
    auto [file, unopened] = files::File::open("/page");
    CHECK(!unopened);
    CHECK(ends.first.send_file(file.native_handle(), 0, text.size()).value == text.size());
    CHECK(reader.join() == text);
  });
}

TEST_SUITE_END();
