// Shows the pattern of a crawler: it reads many pages at once, but the pages of one host one after
// the other, in the order in which they were found. The host is the key of its tasks, so the pool
// runs one of them at a time. The data of a host need no lock, and a large host cannot occupy all
// workers. A task that reads a host's rules comes first and has priority, so that a new host need
// not wait for pages of old hosts. The web is simulated, and the same in each run.
//
//   crawler --hosts 50 --pages 1000 --capacity 16 --fetch-us 500
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/mutex.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/this_fiber.hpp>

#include "command_line.hpp"

namespace {

struct Options {
  std::uint64_t hosts = 50;
  std::uint64_t pages = 1000;
  std::size_t capacity = 16;
  unsigned fetch_microseconds = 500;
};

// Simulates the web. Pages and hosts are numbers.
class Web {
 public:
  explicit Web(const Options& options) : options_(options) {}

  // Hosts differ in size: half of the pages are on the first host.
  [[nodiscard]] std::uint64_t host_of(std::uint64_t page) const {
    return page % 2 == 0 ? 0 : page / 2 % options_.hosts;
  }
  [[nodiscard]] std::vector<std::uint64_t> links_of(std::uint64_t page) const {
    std::vector<std::uint64_t> links;
    for (std::uint64_t i = 1; i <= 4; ++i)
      links.push_back((page * 2654435761u + i * 40503u) % options_.pages);
    return links;
  }
  // Returns whether the rules of the page's host allow the page.
  [[nodiscard]] bool is_allowed(std::uint64_t page) const { return page % 7 != 3; }

 private:
  const Options& options_;
};

// Records the highest number of fibers that were inside at once.
class Gauge {
 public:
  void enter() {
    const int now = ++now_;
    int most = most_;
    while (most < now && !most_.compare_exchange_weak(most, now)) {
    }
  }
  void leave() { --now_; }
  [[nodiscard]] int most() const { return most_; }

 private:
  std::atomic<int> now_{0};
  std::atomic<int> most_{0};
};

class Crawl {
 public:
  explicit Crawl(const Options& options)
      : options_(options),
        web_(options),
        hosts_(options.hosts),
        pool_({.capacity = options.capacity,
               .queue_capacity = weft::kUnlimited,
               .on_exception = [this](std::exception_ptr) { ++failures_; }}) {}

  void run() {
    found(0);
    pool_.wait_idle();
    if (failures_ != 0) throw std::logic_error("a fetch has failed");
  }

  // Checks that each page was read once, and that the pages of a host were read one at a time, in
  // the order in which they were found.
  void check() const {
    std::size_t visited = 0;
    for (const Host& host : hosts_) {
      visited += host.visited.size();
      if (host.gauge.most() > 1) throw std::logic_error("two fetches from a host at once");
      if (host.visited != host.found) throw std::logic_error("a host's pages are out of order");
    }
    if (visited != count_reachable()) throw std::logic_error("pages are missing, or there twice");
    if (at_once_.most() > static_cast<int>(options_.capacity)) {
      throw std::logic_error("too many fetches at once");
    }
  }

  [[nodiscard]] std::size_t pages() const { return seen_.size(); }
  [[nodiscard]] int most_at_once() const { return at_once_.most(); }

 private:
  struct Host {
    std::vector<std::uint64_t> found;  // Guarded by mutex_.
    // Only tasks of this host use this member, and only one of them runs at a time.
    bool has_rules = false;
    std::vector<std::uint64_t> visited;
    Gauge gauge;
  };

  [[nodiscard]] std::size_t count_reachable() const {
    std::set<std::uint64_t> reached{0};
    for (std::vector<std::uint64_t> next{0}; !next.empty();) {
      const std::uint64_t page = next.back();
      next.pop_back();
      if (!web_.is_allowed(page)) continue;
      for (const std::uint64_t link : web_.links_of(page)) {
        if (reached.insert(link).second) next.push_back(link);
      }
    }
    return reached.size();
  }

  void found(std::uint64_t page) {
    const std::uint64_t number = web_.host_of(page);
    Host& host = hosts_[number];
    const std::lock_guard guard(mutex_);
    if (!seen_.insert(page).second) return;
    if (host.found.empty()) {
      submit({.priority = weft::Priority::high, .key = number},
             [this, &host] { read_rules(host); });
    }
    host.found.push_back(page);
    // The submit happens under the lock, so that tasks and `found` have the same order.
    submit({.key = number}, [this, &host, page] { visit(host, page); });
  }

  template <class Task>
  void submit(const weft::SubmitOptions& options, Task task) {
    pool_.go(options, std::move(task));
  }

  void read_rules(Host& host) {
    fetch(host);
    host.has_rules = true;
  }

  void visit(Host& host, std::uint64_t page) {
    if (!host.has_rules) throw std::logic_error("a page before its host's rules");
    host.visited.push_back(page);
    if (!web_.is_allowed(page)) return;
    fetch(host);
    for (const std::uint64_t link : web_.links_of(page)) found(link);
  }

  void fetch(Host& host) {
    host.gauge.enter();
    at_once_.enter();
    weft::this_fiber::sleep_for(std::chrono::microseconds(options_.fetch_microseconds));
    at_once_.leave();
    host.gauge.leave();
  }

  const Options& options_;
  const Web web_;
  weft::Mutex mutex_;
  std::set<std::uint64_t> seen_;  // Guarded by mutex_.
  std::vector<Host> hosts_;
  Gauge at_once_;
  std::atomic<int> failures_{0};
  weft::FiberPool pool_;  // Destroyed first: its tasks use all other members.
};

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t pages = 0;
  int most = 0;
  weft::run([&] {
    Crawl job(options);
    job.run();
    job.check();
    pages = job.pages();
    most = job.most_at_once();
  });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  fmt::print("{} pages of {} hosts in {:.3f} s, {} at once at most, never two of a host\n", pages,
             options.hosts, elapsed.count(), most);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  examples::CommandLine line("crawler",
                             "Fetches made-up pages, from each host one after the other.");
  line.add("--hosts", options.hosts, 1, 1'000'000, "hosts; half of the pages are on the first");
  line.add("--pages", options.pages, 1, 10'000'000,
           "pages, of which those that links lead to are fetched");
  line.add("--capacity", options.capacity, 1, 1'000'000, "fetches at once");
  line.add("--fetch-us", options.fetch_microseconds, 0, 60'000'000, "how long a fetch takes");
  return line.run(argc, argv, [&] { return run(options); });
}
