// Counts a server's responses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/metrics_source.hpp>
#include <weft/http/server.hpp>

#include "libs/http/server/route_index.hpp"

namespace weft::http {

// Order
//   [meter]  make() stores a pointer to a new record (release) -> record(), count_request(),
//            readings and the destructor load it (acquire): they then see its initial counts.

// Counts responses by route and status, and records their durations. Each of the first kOwnParts
// threads that count something has its own part of the counters, to which no other thread writes.
// These threads therefore need no locked instruction. All later threads share the remaining parts.
class Meter {
 public:
  using List = std::function<std::vector<RequestInProgress>(std::size_t most)>;

  // Adds the counts and the result of `stats` to each reading of the metrics. Adds the result of
  // `list` to the process's lists of open requests. Throws std::system_error, std::bad_alloc.
  Meter(const std::string& name, std::function<ServerStats()> stats, List list);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // Counts a response that has ended. `status` is 0 if the connection broke before the response's
  // end. Counts nothing if memory for the counters cannot be allocated.
  void record(RouteIndex route, int status, std::int64_t nanoseconds) noexcept;

  // Counts a well-formed request. Counts nothing if memory for the counters cannot be allocated.
  void count_request() noexcept;
  [[nodiscard]] std::uint64_t requests() const noexcept;
  // All accesses are relaxed, because the values are only counts.
  void count_refused() noexcept { refused_.fetch_add(1, detail::relaxed); }
  void count_malformed() noexcept { malformed_.fetch_add(1, detail::relaxed); }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(detail::relaxed); }
  [[nodiscard]] std::uint64_t malformed() const noexcept {
    return malformed_.load(detail::relaxed);
  }

 private:
  static constexpr std::size_t kOwnParts = 32;
  static constexpr std::size_t kParts = 64;
  // Durations below 2^13 ns (8 us) share the first bucket. The upper bound of each further bucket
  // is twice the bound before it; the last bucket has no upper bound.
  static constexpr std::size_t kFirstBucket = 13;
  static constexpr std::size_t kBuckets = metrics::Distribution::kBuckets - kFirstBucket;

  using Count = detail::Atomic<std::uint64_t>;
  struct alignas(64) Cell {
    std::array<Count, kBuckets> durations{};
    Count nanoseconds{0};
    std::array<Count, 6> statuses{};  // The index is the first digit of the status.
  };
  struct alignas(64) Part {
    Count requests{0};
    std::array<detail::Atomic<Cell*>, kMostRoutes> cells{};
  };

  [[nodiscard]] static std::size_t part_of_thread() noexcept;
  // Adds `amount` to `count`. `part` is the number of the calling thread's part. Relaxed: a count.
  static void add(Count& count, std::uint64_t amount, std::size_t part) noexcept {
    if (part < kOwnParts) {
      count.store(count.load(detail::relaxed) + amount, detail::relaxed);
    } else {
      count.fetch_add(amount, detail::relaxed);
    }
  }
  // Returns part `number`, and creates it on the first call. Returns null if memory runs out.
  [[nodiscard]] Part* part_at(std::size_t number) noexcept;
  template <class Record>
  [[nodiscard]] static Record* make(detail::Atomic<Record*>& place) noexcept;
  void add_stats(const detail::MetricsSource& source, metrics::Reading& reading) const;
  void add_routes(const detail::MetricsSource& source, metrics::Reading& reading) const;
  void add_route(RouteIndex route, const metrics::Labels& labels, metrics::Reading& reading) const;

  const std::function<ServerStats()> stats_;
  Count refused_{0};
  Count malformed_{0};
  std::array<detail::Atomic<Part*>, kParts> parts_{};
  detail::MetricsSource source_;  // Must be last: once it exists, readings may begin.
};

}  // namespace weft::http
