// Gives back the page tables of cold stacks.
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <weft/detail/first_use.hpp>

#include "fibers/stack_layout.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

using detail::relaxed;

namespace {

constexpr int kGuardRemove = 103;  // MADV_GUARD_REMOVE, newer than the headers of Debian 12.

// Returns whether the kernel frees page tables when their addresses are given back. Linux 6.14 does
// so on x86-64.
bool reclaims_tables() noexcept {
#if defined(__x86_64__)
  utsname kernel{};
  unsigned major = 0;
  unsigned minor = 0;
  return uname(&kernel) == 0 && std::sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 14));
#else
  return false;
#endif
}

}  // namespace

// Relaxed: the caller has seen the chunks under the mutex, or by [range].
char* StackSpace::Range::start_of(std::size_t index, unsigned size_class) const noexcept {
  auto chunk = chunks.begin();
  for (; index >= chunk->count.load(relaxed); ++chunk) index -= chunk->count.load(relaxed);
  return chunk->base.load(relaxed) + index * stride(size_class);
}

// Calls madvise() for all stacks of the run, which may be in several chunks.
bool StackSpace::Range::advise(const ColdStacks::Run& run, unsigned size_class,
                               int advice) const noexcept {
  bool is_taken = true;
  const std::size_t last = std::min(run.first + run.count, reserved);
  for (std::size_t index = run.first; index < last;) {
    char* const start = start_of(index, size_class);
    char* end = start;
    for (; index < last && start_of(index, size_class) == end; ++index) end += stride(size_class);
    is_taken = madvise(start, static_cast<std::size_t>(end - start), advice) == 0 && is_taken;
  }
  return is_taken;
}

// Also removes the guards, because page tables with guards are not empty.
bool StackSpace::release_tables(const Range& range, unsigned size_class,
                                const ColdStacks::Run& run) noexcept {
  // The kernel frees an empty page table when all of its addresses are given back.
  return range.advise(run, size_class, kGuardRemove) &&
         range.advise(run, size_class, MADV_DONTNEED);
}

// Holds the lock for a fraction of a millisecond, so that no thread takes one of these stacks.
bool StackSpace::give_tables_back() noexcept {
  constexpr std::size_t kMostBlocks = 2;
  if (!has_spare_tables_hint()) return false;
  const detail::Guard lock(mutex_);
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    Range& range = ranges_[size_class];
    const ColdStacks::Run run = range.cold.find_blocks(kMostBlocks, tables_kept_);
    if (run.count == 0) continue;
    range.cold.strip(run);
    if (release_tables(range, size_class, range.cold.with_neighbours(run))) return true;
  }
  has_spare_tables_.store(false, relaxed);
  for (Range& range : ranges_) range.cold.sort();
  return false;
}

void StackSpace::note_cold(const Range& range) noexcept {
  if (range.cold.size() >= ColdStacks::kBlock) has_cold_blocks_.store(true, relaxed);
  const bool has_spare = range.cold.guarded() >= tables_kept_ + ColdStacks::kBlock;
  if (has_spare && guard_kind_ == GuardKind::lightweight &&
      detail::computed_once<&reclaims_tables>())
    has_spare_tables_.store(true, relaxed);
}

}  // namespace weft::fibers
