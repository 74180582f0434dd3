// Selects the parts of stacks that a core file contains.
#include <sys/mman.h>

#include <span>

#include "base/read_memory.hpp"
#include "fibers/fiber.hpp"
#include "fibers/stack_layout.hpp"
#include "fibers/stack_space.hpp"

namespace weft::fibers {

using detail::acquire;
using detail::relaxed;

namespace {

// Returns whether the page of the header is in memory. To read a header that is not in memory would
// allocate page tables again.
bool has_header(char* start, unsigned size_class) noexcept {
  constexpr std::size_t kPage = 4096;
  static_assert(color(7) + sizeof(Stack) + 64 <= kPage, "the header is in the highest page");
  unsigned char is_present = 0;
  return mincore(top_of(start, size_class) - kPage, kPage, &is_present) != 0 ||
         (is_present & 1) != 0;
}

// If a parked fiber has the stack, returns where the used part of the stack begins; otherwise
// returns the stack's guard. Relaxed: a fiber that is resumed meanwhile will rarely reach another
// page before the process ends.
const char* first_used(const Stack* stack, const char* start) noexcept {
  const Fiber* fiber = stack->fiber;
  const Stack* own = fiber == nullptr ? nullptr : fiber->stack.load(relaxed);
  // An inlined child has the context, and its own header, below its parent's header. If the child
  // ends meanwhile, its header is readable, but may contain any bytes.
  while (own != stack) {
    if (own == nullptr || own > stack || reinterpret_cast<const char*>(own) < start) return start;
    stack = own;
    fiber = own->fiber;
    if (fiber == nullptr || !base::read_memory(&fiber->stack, &own, sizeof own)) return start;
  }
  if (fiber == nullptr || fiber->state.load(relaxed) != FiberState::parked) return start;
  const auto* context = reinterpret_cast<const char*>(stack->context.load(relaxed));
  // The previous page has the bytes that a function may use below its stack pointer.
  constexpr std::size_t kPage = 4096;
  if (context < start + kGuardBytes + 2 * kPage || context > reinterpret_cast<const char*>(stack)) {
    return start;
  }
  const auto offset = static_cast<std::size_t>(context - start);
  return start + (offset / kPage - 1) * kPage;
}

}  // namespace

void StackSpace::bring_into_cores(Range& range, unsigned size_class, const Picks& picks) noexcept {
  constexpr std::size_t kBlock = ColdStacks::kBlock;
  for (const std::uint32_t index : std::span(picks.indices).first(picks.count)) {
    const std::size_t block = index / kBlock;
    if (range.in_cores[block] != 0) continue;
    range.in_cores[block] = 1;
    (void)range.advise({block * kBlock, kBlock}, size_class, MADV_DODUMP);
  }
}

bool StackSpace::leave_out_of_cores() noexcept {
  constexpr std::size_t kBlock = ColdStacks::kBlock;
  if (!has_cold_blocks_hint()) return false;
  unsigned left = 16;
  const detail::Guard lock(mutex_);
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    Range& range = ranges_[size_class];
    for (std::size_t block = 0; block < range.in_cores.size(); ++block) {
      if (range.in_cores[block] == 0 || !range.cold.has_whole_block(block)) continue;
      if (left-- == 0) return true;
      range.in_cores[block] = 0;
      (void)range.advise({block * kBlock, kBlock}, size_class, MADV_DONTDUMP);
    }
  }
  has_cold_blocks_.store(false, relaxed);
  return false;
}

std::size_t StackSpace::leave_unused_parts_out_of_core(const void* kept,
                                                       std::size_t mappings) const noexcept {
  // A guard by mprotect() already divides the mapping between two stacks.
  const std::size_t price = guard_kind_ == GuardKind::lightweight ? 2 : 1;
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    const Range& range = ranges_[size_class];
    const std::size_t carved = range.carved.load(acquire);  // [range]
    for (std::size_t index = 0; index < carved; ++index) {
      char* const start = range.start_of(index, size_class);
      // The fiber of this stack runs, although it may already be marked as parked.
      if (kept >= start && kept < start + stride(size_class)) continue;
      if (!has_header(start, size_class)) continue;
      const char* const end = first_used(header_of(start, size_class, index), start);
      const auto bytes = static_cast<std::size_t>(end - start);
      if (bytes == 0) continue;
      if (mappings < price || madvise(start, bytes, MADV_DONTDUMP) != 0) return 0;
      mappings -= price;
    }
  }
  return mappings;
}

}  // namespace weft::fibers
