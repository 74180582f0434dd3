#include "fibers/block_cache.hpp"

#include <algorithm>
#include <weft/detail/small_block.hpp>

__thread weft::fibers::BlockCache* weft_block_cache [[gnu::tls_model("initial-exec")]] = nullptr;

namespace weft::detail {

using fibers::BlockCache;

// These functions are not inlined, because a fiber, which may move to another thread, must not
// cache the address.
[[gnu::noinline]] void* allocate_small(std::size_t bytes) {
  BlockCache* const cache = weft_block_cache;
  if (cache == nullptr || bytes > BlockCache::kBlockBytes) {
    return ::operator new(std::max(bytes, BlockCache::kBlockBytes));
  }
  return cache->take();
}

[[gnu::noinline]] void free_small(void* memory, std::size_t bytes) noexcept {
  BlockCache* const cache = weft_block_cache;
  if (cache == nullptr || bytes > BlockCache::kBlockBytes) return ::operator delete(memory);
  cache->give(memory);
}

}  // namespace weft::detail
