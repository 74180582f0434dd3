// Parts of the program that have figures of their own for the metrics: servers, say.
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

// The family of that name in a reading. It is added if there is none.
// Throws std::bad_alloc.
[[nodiscard]] metrics::Family& family_of(metrics::Reading& reading, std::string_view name,
                                         std::string_view type, std::string_view help);

// A request that a server reads or answers, for dumps and pages.
struct OpenRequest {
  metrics::Labels server;
  std::uint64_t fiber = 0;  // Dumps show the same number.
  std::string what;         // Method and target.
  std::string peer;
  std::string route;
  const char* state = "";
  std::chrono::nanoseconds age{};
  std::chrono::nanoseconds waiting{};  // For the client; 0: not now.
};

// While one lives, each reading of the metrics has what it adds.
class MetricsSource {
 public:
  // Adds samples to a reading. It must not park, and must not make or destroy a source.
  using Add = std::function<void(const MetricsSource&, metrics::Reading&)>;

  // Adds its longest requests, at most that many; on the same terms.
  using List =
      std::function<void(const MetricsSource&, std::vector<OpenRequest>&, std::size_t most)>;

  // `kind` is the name of the label whose value is `name`.
  // Throws std::system_error, std::bad_alloc.
  MetricsSource(std::string_view kind, std::string name, Add add, List list = {});
  // Waits for a reading that is being made.
  ~MetricsSource();
  MetricsSource(const MetricsSource&) = delete;
  MetricsSource& operator=(const MetricsSource&) = delete;

  // The label that tells the source apart, and `number` too, from the second of its name on.
  [[nodiscard]] metrics::Labels labels() const;

  // Lets each source of this process add to `reading`, in the order of their making. In the child
  // of a fork a source of the parent process may be locked forever, and is left out. Throws
  // std::bad_alloc.
  static void read_all(metrics::Reading& reading);
  // Returns the longest requests of each source, the longest first; none if the lock of the sources
  // was not to be had before `patience` ended.
  [[nodiscard]] static std::vector<OpenRequest> requests(std::size_t most,
                                                         Deadline patience = Deadline::never());

 private:
  const std::string_view kind_;
  const std::string name_;
  const Add add_;
  const List list_;
  unsigned number_ = 1;  // The smallest that no other source of the name had at its construction.
  unsigned forks_ = 0;   // Forks before its construction.
  MetricsSource* next_ = nullptr;
  MetricsSource* previous_ = nullptr;
};

}  // namespace weft::detail
