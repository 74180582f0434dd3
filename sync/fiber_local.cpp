#include <weft/fiber_local.hpp>

#include <weft/detail/atomic.hpp>

namespace weft::detail {

std::uint64_t new_local_key() noexcept {
  static constinit Atomic<std::uint64_t> keys{kFirstFreeKey};
  return keys.fetch_add(1, relaxed);  // Relaxed: only distinctness matters.
}

}  // namespace weft::detail
