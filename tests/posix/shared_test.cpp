// Tests state that libraries share between fibers: a connection, and thread-specific values.
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"
#include "tests/support/skip.hpp"
#ifdef WEFT_TEST_SQLITE
#include <sqlite3.h>
#endif
#ifdef WEFT_TEST_OPENSSL
#include <openssl/err.h>
#endif

namespace {

using weft::posix::Locks;
using weft::posix::Scope;
using weft::test::has_hooks;

TEST_SUITE_BEGIN("posix/shared");

#ifdef WEFT_TEST_SQLITE
// Makes a database in a temporary file.
class Database {
 public:
  Database() {
    const int file = ::mkstemp(name_.data());
    CHECK(file >= 0);
    ::close(file);
    for (sqlite3*& connection : connections_) {
      CHECK(::sqlite3_open_v2(name_.data(), &connection,
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr) == SQLITE_OK);
      CHECK(::sqlite3_busy_timeout(connection, 60'000) == SQLITE_OK);
      CHECK(run(connection, "pragma synchronous = off"));
    }
    CHECK(run(connections_[0], "create table numbers (number integer)"));
  }
  ~Database() {
    for (sqlite3* connection : connections_) CHECK(::sqlite3_close(connection) == SQLITE_OK);
    ::unlink(name_.data());
    ::unlink((std::string(name_.data()) + "-journal").c_str());
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] bool insert(int number) {
    return run(connections_[static_cast<std::size_t>(number) % 2],
               ("insert into numbers values (" + std::to_string(number) + ")").c_str());
  }
  [[nodiscard]] std::string count() {
    std::string text;
    CHECK(::sqlite3_exec(
              connections_[0], "select count(distinct number) from numbers",
              [](void* to, int, char** row, char**) {
                *static_cast<std::string*>(to) = row[0];
                return 0;
              },
              &text, nullptr) == SQLITE_OK);
    return text;
  }

 private:
  static bool run(sqlite3* connection, const char* statement) {
    return ::sqlite3_exec(connection, statement, nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  std::array<char, 20> name_{"/tmp/weft-XXXXXX"};
  std::array<sqlite3*, 2> connections_{};
};
#endif

// SQLite sleeps with its recursive mutex locked while the other connection has locked the file.
FIBER_TEST_CASE("fibers that share two SQLite connections insert all 800 rows") {
#ifdef WEFT_TEST_SQLITE
  if (!has_hooks()) return;
  for (const Locks locks : {Locks::strict, Locks::carry}) {
    Database database;
    std::atomic<int> failed{0};
    weft::WaitGroup group;
    constexpr int kFibers = 40;
    constexpr int kInserts = 20;
    for (int i = 0; i < kFibers; ++i) {
      group.go([&, i] {
        const Scope scope({.locks = locks});
        for (int k = 0; k < kInserts; ++k) failed += database.insert(k * kFibers + i) ? 0 : 1;
      });
    }
    group.wait();
    CHECK(failed == 0);
    CHECK(database.count() == std::to_string(kFibers * kInserts));
  }
#else
  weft::test::skip("SQLite is missing; on Debian it comes with libsqlite3-dev");
#endif
}

FIBER_TEST_CASE_WITH("each fiber has its own OpenSSL error queue", {.workers = {1, 2}}) {
#ifdef WEFT_TEST_OPENSSL
  if (!has_hooks()) return;
  weft::WaitGroup group;
  for (int i = 1; i <= 40; ++i) {
    group.go([i] {
      const Scope scope;
      CHECK(::ERR_peek_error() == 0);
      for (int error = 0; error < 2; ++error) {
        ERR_put_error(ERR_LIB_USER, 0, i, __FILE__, __LINE__);
        ::usleep(1);
      }
      for (int error = 0; error < 2; ++error) CHECK(ERR_GET_REASON(::ERR_get_error()) == i);
      CHECK(::ERR_get_error() == 0);
    });
  }
  group.wait();
#else
  weft::test::skip("OpenSSL is missing; on Debian it comes with libssl-dev");
#endif
}

TEST_SUITE_END();

}  // namespace
