// Parts of the program that contribute to the metrics, such as servers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/metrics.hpp>

namespace weft::detail {

// Returns the family `name` of a reading, which is added if the reading has none. Throws
// std::bad_alloc.
[[nodiscard]] metrics::Family& family_of(metrics::Reading& reading, std::string_view name,
                                         std::string_view type, std::string_view help);

// A request that a server reads or answers, for dumps and pages.
struct OpenRequest {
  metrics::Labels server;
  std::uint64_t fiber = 0;  // Its number, as in dumps.
  std::string what;         // Method and target.
  std::string peer;
  std::string route;
  const char* state = "";
  std::chrono::nanoseconds age{};
  std::chrono::nanoseconds waiting{};  // How long it waits for the client; 0: not at all.
};

using ListRequests = std::vector<OpenRequest> (*)(std::size_t most, Deadline patience);
// Dumps list requests by `list` from now on. The first MetricsSource installs it, so that programs
// without sources do not link it.
void list_requests_with(ListRequests list) noexcept;

// While it exists, each reading of the metrics includes what it adds.
class MetricsSource {
 public:
  // Adds samples to a reading. It must not park, and must not make or destroy a source.
  using Add = std::function<void(const MetricsSource&, metrics::Reading&)>;

  // Adds its longest requests, at most `most` of them, under the same rules.
  using List =
      std::function<void(const MetricsSource&, std::vector<OpenRequest>&, std::size_t most)>;

  // `kind` is the name of the label whose value is `name`.
  // Throws std::system_error, std::bad_alloc.
  MetricsSource(std::string_view kind, std::string name, Add add, List list = {});
  // Waits for a reading in progress.
  ~MetricsSource();
  MetricsSource(const MetricsSource&) = delete;
  MetricsSource& operator=(const MetricsSource&) = delete;

  // The source's label; for all but the first source of a name, it includes `number`.
  [[nodiscard]] metrics::Labels labels() const;

  // Lets each source of this process add to `reading`, in the order of their creation. In the child
  // of a fork, a source of the parent process may be locked forever, and is left out. In a
  // simulation, the caller's host counts as the process. Throws std::bad_alloc.
  static void read_all(metrics::Reading& reading);
  // Returns the longest requests of each source, the longest first; in a simulation, of all hosts.
  // Returns none if the lock of the sources was not free before `patience` ended.
  [[nodiscard]] static std::vector<OpenRequest> requests(std::size_t most,
                                                         Deadline patience = Deadline::never());

 private:
  const std::string_view kind_;
  const std::string name_;
  const Add add_;
  const List list_;
  unsigned number_ = 1;          // The smallest number that was free at its construction.
  unsigned forks_ = 0;           // The number of forks before its construction.
  const std::uint64_t process_;  // 0 outside of simulations.
  MetricsSource* next_ = nullptr;
  MetricsSource* previous_ = nullptr;
};

}  // namespace weft::detail
