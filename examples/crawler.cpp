// A crawler's pattern: many pages at once, but of each host one after the other, in the order in
// which they were found. A host has a queue of its own and is in the pool at most once: its task
// fetches one page and hands itself in again while there are more, behind the other hosts. So a
// large host cannot keep the workers to itself. The web is made up, and the same in each run.
//
//   crawler --hosts 50 --pages 1000 --capacity 16 --fetch-us 500
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
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

// Pages are numbers; so are hosts.
class Web {
 public:
  explicit Web(const Options& options) : options_(options) {}

  // Small hosts and large ones: half of the pages are on the first.
  [[nodiscard]] std::uint64_t host_of(std::uint64_t page) const {
    return page % 2 == 0 ? 0 : page / 2 % options_.hosts;
  }
  [[nodiscard]] std::vector<std::uint64_t> links_of(std::uint64_t page) const {
    std::vector<std::uint64_t> links;
    for (std::uint64_t i = 1; i <= 4; ++i)
      links.push_back((page * 2654435761u + i * 40503u) % options_.pages);
    return links;
  }

 private:
  const Options& options_;
};

// Tasks with a key, those of a key one after the other; in a pool, for which each key is one task.
// The pool's queue must be unlimited: a task hands its key in again and must not be refused.
template <class Item, class Handler>
class SerialByKey {
 public:
  SerialByKey(weft::FiberPool& pool, std::size_t keys, Handler handler)
      : pool_(pool), handler_(std::move(handler)), queues_(keys) {}

  void push(std::size_t key, Item item) {
    Queue& queue = queues_[key];
    {
      const std::lock_guard guard(queue.mutex);
      queue.items.push_back(std::move(item));
      if (std::exchange(queue.is_in_pool, true)) return;
    }
    hand_in(queue);
  }

 private:
  struct Queue {
    weft::Mutex mutex;  // Guards the rest.
    std::deque<Item> items;
    bool is_in_pool = false;
  };

  void hand_in(Queue& queue) {
    if (const auto refused = pool_.submit([this, &queue] { handle_one(queue); })) {
      throw std::system_error(refused);
    }
  }

  void handle_one(Queue& queue) {
    handler_(take(queue));
    {
      const std::lock_guard guard(queue.mutex);
      queue.is_in_pool = !queue.items.empty();
      if (!queue.is_in_pool) return;
    }
    hand_in(queue);
  }

  Item take(Queue& queue) {
    const std::lock_guard guard(queue.mutex);
    Item item = std::move(queue.items.front());
    queue.items.pop_front();
    return item;
  }

  weft::FiberPool& pool_;
  Handler handler_;
  std::vector<Queue> queues_;
};

// The highest number of parties that were inside at once.
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
        queues_(pool_, options.hosts, Fetch{this}),
        pool_({.capacity = options.capacity,
               .queue_capacity = weft::kUnlimited,
               .on_exception = [this](std::exception_ptr) { ++failures_; }}) {}

  void run() {
    found(0);
    pool_.wait_idle();
    if (failures_ != 0) throw std::logic_error("a fetch has failed");
  }

  // Each page once, from each host one at a time and in the order in which they were found.
  void check() const {
    std::set<std::uint64_t> reached{0};
    for (std::vector<std::uint64_t> next{0}; !next.empty();) {
      const std::uint64_t page = next.back();
      next.pop_back();
      for (const std::uint64_t link : web_.links_of(page)) {
        if (reached.insert(link).second) next.push_back(link);
      }
    }
    std::size_t fetched = 0;
    for (const Host& host : hosts_) {
      fetched += host.fetched.size();
      if (host.gauge.most() > 1) throw std::logic_error("two fetches from a host at once");
      if (host.fetched != host.found) throw std::logic_error("a host's pages are out of order");
    }
    if (fetched != reached.size()) throw std::logic_error("pages are missing, or there twice");
    if (at_once_.most() > static_cast<int>(options_.capacity)) {
      throw std::logic_error("too many fetches at once");
    }
  }

  [[nodiscard]] std::size_t pages() const { return seen_.size(); }
  [[nodiscard]] int most_at_once() const { return at_once_.most(); }

 private:
  struct Host {
    std::vector<std::uint64_t> found;    // Guarded by mutex_.
    std::vector<std::uint64_t> fetched;  // Of the host's only task.
    Gauge gauge;
  };
  struct Fetch {
    Crawl* crawl;
    void operator()(std::uint64_t page) const { crawl->fetch(page); }
  };

  void found(std::uint64_t page) {
    const std::lock_guard guard(mutex_);
    if (!seen_.insert(page).second) return;
    const std::uint64_t host = web_.host_of(page);
    hosts_[host].found.push_back(page);
    queues_.push(host, page);  // Under the lock, so that both are in the same order.
  }

  void fetch(std::uint64_t page) {
    Host& host = hosts_[web_.host_of(page)];
    host.gauge.enter();
    at_once_.enter();
    weft::this_fiber::sleep_for(std::chrono::microseconds(options_.fetch_microseconds));
    host.fetched.push_back(page);
    at_once_.leave();
    host.gauge.leave();
    for (const std::uint64_t link : web_.links_of(page)) found(link);
  }

  const Options& options_;
  const Web web_;
  weft::Mutex mutex_;
  std::set<std::uint64_t> seen_;  // Guarded by mutex_.
  std::vector<Host> hosts_;
  Gauge at_once_;
  std::atomic<int> failures_{0};
  SerialByKey<std::uint64_t, Fetch> queues_;
  weft::FiberPool pool_;  // Ends first: its tasks use all the others.
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
  CLI::App app("Fetches made-up pages, from each host one after the other.", "crawler");
  app.add_option("--hosts", options.hosts, "hosts; half of the pages are on the first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--pages", options.pages, "pages, of which those that links lead to are fetched")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--capacity", options.capacity, "fetches at once")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--fetch-us", options.fetch_microseconds, "how long a fetch takes")
      ->check(CLI::Range(0, 60'000'000))
      ->capture_default_str();
  return examples::parse_and_run(app, argc, argv, [&] { return run(options); });
}
