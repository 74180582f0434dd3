// Lets components of a program, such as servers, contribute samples to the metrics.
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

// Returns the family `name` of `reading`; adds it if it is missing. Throws std::bad_alloc.
[[nodiscard]] metrics::Family& family_of(metrics::Reading& reading, std::string_view name,
                                         std::string_view type, std::string_view help);

// A request that a server is reading or answering, as dumps and live pages show it.
struct OpenRequest {
  metrics::Labels server;
  std::uint64_t fiber = 0;  // The fiber's number, as in dumps.
  std::string what;         // Method and target.
  std::string peer;
  std::string route;
  const char* state = "";
  std::chrono::nanoseconds age{};
  std::chrono::nanoseconds waiting{};  // How long the server has waited for the client; 0: no wait.
};

using ListRequests = std::vector<OpenRequest> (*)(std::size_t most, Deadline patience);
// Makes later dumps call `list` to get the requests. Only MetricsSource's constructor calls this,
// so programs without sources do not link the function that it passes as `list`.
void list_requests_with(ListRequests list) noexcept;

// While a source exists, each reading of the metrics includes the source's samples.
class MetricsSource {
 public:
  // A function that adds samples to a reading. It must not park, and must not make or destroy a
  // source.
  using Add = std::function<void(const MetricsSource&, metrics::Reading&)>;

  // A function that adds up to `most` of the oldest requests. The rules for Add also apply here.
  using List =
      std::function<void(const MetricsSource&, std::vector<OpenRequest>&, std::size_t most)>;

  // The source gets a label with the name `kind` and the value `name`. Throws std::system_error,
  // std::bad_alloc.
  MetricsSource(std::string_view kind, std::string name, Add add, List list = {});
  // Waits until a reading in progress has ended.
  ~MetricsSource();
  MetricsSource(const MetricsSource&) = delete;
  MetricsSource& operator=(const MetricsSource&) = delete;

  // Returns the source's labels. The labels include the number, unless it is 1; see number_.
  [[nodiscard]] metrics::Labels labels() const;

  // Adds the samples of each source of this process to `reading`, in the order of creation. In the
  // child of a fork, a source of the parent process may be locked forever, so the reading omits it.
  // In a simulation, only sources of the caller's host are read. Throws std::bad_alloc.
  static void read_all(metrics::Reading& reading);
  // Returns the oldest requests of each source (in a simulation, on all hosts), sorted by age.
  // Returns no request if the sources' lock was not free by the deadline `patience`.
  [[nodiscard]] static std::vector<OpenRequest> requests(std::size_t most,
                                                         Deadline patience = Deadline::never());

 private:
  const std::string_view kind_;
  const std::string name_;
  const Add add_;
  const List list_;
  unsigned number_ = 1;          // Distinguishes sources with the same kind and name.
  const std::uint32_t forks_;    // The number of forks before the source was made.
  const std::uint64_t process_;  // 0 outside of simulations.
  MetricsSource* next_ = nullptr;
  MetricsSource* previous_ = nullptr;
};

}  // namespace weft::detail
