#include <chrono>
#include <string>
#include <weft/detail/atomic.hpp>
#include <weft/detail/metrics_source.hpp>

#include "base/printable.hpp"
#include "runtime/dump.hpp"

namespace weft {

namespace {

// Relaxed: the pointer leads only to code.
constinit detail::Atomic<detail::ListRequests> request_lister{nullptr};

}  // namespace

void detail::list_requests_with(ListRequests list) noexcept { request_lister.store(list, relaxed); }

std::unordered_map<std::uint64_t, runtime::RequestText> runtime::describe_requests(
    Deadline patience) {
  constexpr std::size_t kMost = 256;
  std::unordered_map<std::uint64_t, RequestText> requests;
  const detail::ListRequests list = request_lister.load(detail::relaxed);
  if (list == nullptr) return requests;
  const std::int64_t now = Deadline::now_nanoseconds();
  for (const detail::OpenRequest& open : list(kMost, patience)) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(open.age).count();
    std::string text =
        open.what + " from " + open.peer + ", " + open.state + ", " + std::to_string(age) + " ms";
    base::make_printable(text);
    requests[open.fiber] = {std::move(text), now - open.age.count()};
  }
  return requests;
}

}  // namespace weft
