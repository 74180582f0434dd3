// Sends requests to a real server from many clients at once, through a blocking library.
//
//   posix_servers --list                            the libraries that it was built with
//   posix_servers LIBRARY WHERE WAY CLIENTS CALLS   asks; prints one line of results
//
// WAY is how a client waits: `scope` in a fiber with a posix::Scope, `carry` in one that carries
// locks, `nothing` in a fiber without one, `blocking` in weft::blocking(), `threads` in a separate
// thread. Each of CLIENTS makes a slow call, all at once, and then CALLS quick calls. The exit
// status is 1 if an answer is wrong. Times do not affect the status.
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/go.hpp>
#include <weft/posix.hpp>
#include <weft/runtime.hpp>
#include <weft/semaphore.hpp>
#include <weft/wait_group.hpp>

#include "tests/posix/servers/client.hpp"

namespace weft::test {

std::span<const Library> libraries() noexcept {
  static constexpr std::array all{
#ifdef WEFT_TEST_LIBPQ
      Library{"libpq", &connect_libpq},
#endif
#ifdef WEFT_TEST_MARIADB
      Library{"mariadb", &connect_mariadb},
#endif
#ifdef WEFT_TEST_HIREDIS
      Library{"hiredis", &connect_hiredis},
#endif
#ifdef WEFT_TEST_CURL
      Library{"curl", &connect_curl},
#endif
#ifdef WEFT_TEST_OPENSSL
      Library{"openssl", &connect_openssl},
#endif
#ifdef WEFT_TEST_HTTPLIB
      Library{"httplib", &connect_httplib},
#endif
#ifdef WEFT_TEST_LIBSSH2
      Library{"libssh2", &connect_libssh2},
#endif
      Library{"", nullptr},
  };
  return std::span(all).first(all.size() - 1);
}

namespace {

using Clock = std::chrono::steady_clock;
using Call = std::function<void(std::size_t client)>;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

rusage usage() {
  rusage now{};
  ::getrusage(RUSAGE_SELF, &now);
  return now;
}

double processor_microseconds() {
  const auto in_microseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  const rusage now = usage();
  return in_microseconds(now.ru_utime) + in_microseconds(now.ru_stime);
}

// Makes a call for each client at once, and returns when all have returned.
class Way {
 public:
  explicit Way(std::string name) : name_(std::move(name)) {}

  void for_each_client(std::size_t clients, const Call& call) const {
    if (name_ == "threads") {
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < clients; ++i) threads.emplace_back(call, i);
      for (std::thread& thread : threads) thread.join();
      return;
    }
    WaitGroup group;
    for (std::size_t i = 0; i < clients; ++i) {
      if (name_ == "scope" || name_ == "carry") {
        const auto locks = name_ == "carry" ? posix::Locks::carry : posix::Locks::strict;
        group.go(posix::in_scope({.locks = locks}, [&call, i] { call(i); }));
      } else {
        group.go([&call, i] { call(i); });
      }
    }
    group.wait();
  }
  // Makes one call to the library.
  void ask(const std::function<void()>& call) const {
    if (name_ == "blocking") {
      blocking(call);
    } else {
      call();
    }
  }

 private:
  const std::string name_;
};

// Returns how many intercepted calls did not park. The monitor's clock finds the other blocked
// calls, and waits for locks, so their number does not affect the result.
std::uint64_t count_blocked() {
  std::uint64_t count = 0;
  for (const posix::BlockedCalls& row : posix::report()) {
    if (row.reason == posix::kNotIntercepted || row.call.starts_with("pthread_mutex_")) continue;
    count += row.count;
    std::fprintf(stderr, "blocked: %s, %s, from %s, %llu times\n", row.call.c_str(),
                 row.reason.c_str(), row.from.c_str(), static_cast<unsigned long long>(row.count));
  }
  return count;
}

int ask_all(const Library& library, const std::string& where, const std::string& way_name,
            std::size_t clients, std::size_t calls) {
  const Way way(way_name);
  std::vector<std::unique_ptr<Client>> connected(clients);
  std::atomic<std::uint64_t> wrong{0};
  // A server that must accept, start processes or compute keys for thousands of clients at a time
  // may drop some of them.
  Semaphore connecting(200);
  way.for_each_client(clients, [&](std::size_t i) {
    connecting.acquire();
    way.ask([&] {
      connected[i] = library.connect(where);
      if (connected[i] == nullptr) ++wrong;
    });
    connecting.release();
  });
  if (wrong != 0) {
    std::fprintf(stderr, "%llu clients are refused\n",
                 static_cast<unsigned long long>(wrong.load()));
    return 1;
  }
  const Clock::time_point begin = Clock::now();
  way.for_each_client(clients, [&](std::size_t i) {
    way.ask([&] { wrong += connected[i]->call_slowly() ? 0 : 1; });
  });
  const double slow = milliseconds_since(begin);
  const double before = processor_microseconds();
  way.for_each_client(clients, [&](std::size_t i) {
    for (std::size_t call = 0; call < calls; ++call)
      way.ask([&] { wrong += connected[i]->call_quickly() ? 0 : 1; });
  });
  const double quick = (processor_microseconds() - before) /
                       static_cast<double>(clients * std::max<std::size_t>(calls, 1));
  way.for_each_client(clients, [&](std::size_t i) { way.ask([&] { connected[i].reset(); }); });
  std::printf(
      "%s %s clients %zu slow_ms %.0f quick_us %.1f memory_mb %ld blocked %llu wrong %llu\n",
      library.name.data(), way_name.c_str(), clients, slow, quick, usage().ru_maxrss / 1024,
      static_cast<unsigned long long>(count_blocked()),
      static_cast<unsigned long long>(wrong.load()));
  return wrong == 0 ? 0 : 1;
}

int run_with(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--list") {
    for (const Library& library : libraries()) std::printf("%s\n", library.name.data());
    return 0;
  }
  if (words.size() != 5) {
    std::fprintf(stderr, "posix_servers: --list, or LIBRARY WHERE WAY CLIENTS CALLS\n");
    return 2;
  }
  for (const Library& library : libraries()) {
    if (library.name != words[0]) continue;
    const auto ask = [&] {
      return ask_all(library, words[1], words[2], std::stoul(words[3]), std::stoul(words[4]));
    };
    if (words[2] == "threads") return ask();
    RuntimeOptions options;
    options.workers = 2;
    options.on_stall = [](const StallReport&) {};
    return Runtime(options).run(ask);
  }
  std::fprintf(stderr, "posix_servers: built without '%s'\n", words[0].c_str());
  return 2;
}

}  // namespace

}  // namespace weft::test

int main(int argc, char** argv) {
  return weft::test::run_with(std::vector<std::string>(argv + 1, argv + argc));
}
