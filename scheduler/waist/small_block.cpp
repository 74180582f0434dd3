// Memory for the state that a fiber and its handle share.
#include <algorithm>
#include <new>
#include <weft/detail/small_block.hpp>

#include "scheduler/worker/block_cache.hpp"
#include "scheduler/worker/current_worker.hpp"
#include "scheduler/worker/worker.hpp"

namespace weft::detail {

using scheduler::current_worker;
using scheduler::Worker;

void* allocate_small(std::size_t bytes) {
  Worker* worker = current_worker();
  if (worker == nullptr || bytes > scheduler::BlockCache::kBlockBytes) {
    return ::operator new(std::max(bytes, scheduler::BlockCache::kBlockBytes));
  }
  return worker->blocks().take();
}

void free_small(void* memory, std::size_t bytes) noexcept {
  Worker* worker = current_worker();
  if (worker == nullptr || bytes > scheduler::BlockCache::kBlockBytes) {
    return ::operator delete(memory);
  }
  worker->blocks().give(memory);
}

}  // namespace weft::detail
