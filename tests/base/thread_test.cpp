#include "base/thread.hpp"

#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>

namespace {

TEST_SUITE_BEGIN("base/thread");

TEST_CASE("usable_processors() returns 1 for a thread that may use only one processor") {
  unsigned processors = 0;
  std::thread([&] {
    cpu_set_t mine;
    REQUIRE(sched_getaffinity(0, sizeof mine, &mine) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &mine)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    processors = weft::base::usable_processors();
  }).join();
  CHECK(processors == 1);
  CHECK(weft::base::usable_processors() >= 1);
  CHECK(weft::base::usable_processors() <= std::thread::hardware_concurrency());
}

TEST_CASE(
    "usable_processors_hint() returns 0 when no file descriptor is free for reading the CPU "
    "quota") {
  CHECK(weft::base::usable_processors_hint() == weft::base::usable_processors());
  CHECK(weft::base::online_processors() >= weft::base::usable_processors());
  const int lowest = ::dup(0);
  REQUIRE(lowest >= 0);
  ::close(lowest);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const unsigned processors = weft::base::usable_processors_hint();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(processors == 0);
}

// The test retries, because the system may count a joined thread for a moment longer.
TEST_CASE("the number of threads of the process includes the caller") {
  bool is_counted = false;
  for (int tries = 0; tries < 1000 && !is_counted; ++tries) {
    const unsigned before = weft::base::count_threads();
    CHECK(before >= 1);
    std::promise<void> end;
    std::thread other([&] { end.get_future().wait(); });
    is_counted = weft::base::count_threads() == before + 1;
    end.set_value();
    other.join();
  }
  CHECK(is_counted);
}

TEST_CASE("a long thread name is truncated to the system's maximum length") {
  std::string shown;
  std::thread([&] {
    weft::base::set_thread_name("a name of more than fifteen characters");
    char name[64] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    shown = name;
  }).join();
  CHECK(shown == "a name of more ");
}

TEST_SUITE_END();

}  // namespace
