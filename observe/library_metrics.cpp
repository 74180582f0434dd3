#include <weft/detail/library_metrics.hpp>

#include <weft/detail/atomic.hpp>

namespace weft::detail {

namespace {

// Order
//   [library]  add_library_metrics stores the first (release) -> a reader loads it (acquire): the
//              library and its successors are visible.
constinit Atomic<const LibraryMetrics*> first_library{nullptr};

}  // namespace

void add_library_metrics(LibraryMetrics& library) noexcept {
  library.next = first_library.load(relaxed);  // Relaxed: the exchange decides.
  bool is_added = false;
  while (!is_added) {
    is_added =
        first_library.compare_exchange_weak(library.next, &library, release, relaxed);  // [library]
  }
}

const LibraryMetrics* first_library_metrics() noexcept {
  return first_library.load(acquire);  // [library]
}

}  // namespace weft::detail
