#include "fibers/stack_space.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <weft/detail/first_use.hpp>
#include <weft/detail/invariant.hpp>

#include "base/memory_limits.hpp"
#include "fibers/stack_layout.hpp"

namespace weft::fibers {

using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL, newer than the headers of Debian 12.
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
constexpr int kPidfdSelf = -10000;  // Linux 6.14, newer than the headers of Debian 12.
constexpr std::size_t kPage = 4096;

// The limit for the stacks of one size. Address space is plentiful, except under a sanitizer, which
// needs shadow memory for all of it. For the default size, the limit has room for 1.8 million
// stacks.
constexpr std::size_t kReservedBytes =
    kSanitized ? (std::size_t{8} << 30) : (std::size_t{256} << 30);
// The size of the first chunk, which has room for 7 400 stacks of the default size.
constexpr std::size_t kFirstChunk = std::size_t{1} << 30;
// All ranges of a process together may have at most this size, which is half of user space.
constexpr std::size_t kReservedByAll = std::size_t{64} << 40;
constexpr std::size_t kExtension = std::size_t{32} << 20;

// The sums, for the whole process, of the reserved ranges and of the guards that are mappings.
// Relaxed: the sums guard no other data.
detail::Atomic<std::size_t> reserved_by_all{0};
detail::Atomic<std::size_t> protected_by_all{0};

// Returns the address space that a new range may have: the usual limit, or a share of the remaining
// address space. So the program and its threads have room. Unless the address space of the process
// is limited, a hundred other runtimes also have room.
std::size_t share_of_address_space() noexcept {
  const std::size_t reserved = std::min(reserved_by_all.load(relaxed), kReservedByAll);
  return std::min(
      {kReservedBytes, (kReservedByAll - reserved) / 256, base::address_space_left() / 4});
}

// Returns how many guards may be mappings. Each stack then has two mappings, and a quarter of all
// mappings remains for other code.
std::size_t most_protected() noexcept { return base::most_mappings() / 4 * 3 / 2; }

std::uintptr_t page_size() noexcept { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

// Returns whether the kernel supports lightweight guards, and allows them in this memory.
GuardKind probe_guards() noexcept {
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return GuardKind::protection;
  const bool works = madvise(page, kPage, kGuardInstall) == 0;
  munmap(page, kPage);
  return works ? GuardKind::lightweight : GuardKind::protection;
}

}  // namespace

void give_back_below(const Stack& stack, const void* frame) noexcept {
  // The calls below need at most this many bytes of stack.
  constexpr std::uintptr_t kRoom = 4096;
  const std::uintptr_t page = detail::computed_once<&page_size>();
  const auto address = reinterpret_cast<std::uintptr_t>(frame);
  const auto lowest = reinterpret_cast<std::uintptr_t>(stack.lowest);
  if (address < lowest + kRoom || address >= reinterpret_cast<std::uintptr_t>(&stack)) return;
  const std::uintptr_t first = (lowest + page - 1) & ~(page - 1);
  const std::uintptr_t end = (address - kRoom) & ~(page - 1);
  if (end > first) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

StackSpace::StackSpace(StackMain entry, std::size_t tables_kept) noexcept
    : entry_(entry), tables_kept_(tables_kept), guard_kind_(probe_guards()) {}

// Relaxed: no other thread uses the space any more.
StackSpace::~StackSpace() {
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    Range& range = ranges_[size_class];
    if (kSanitized || SanitizerStack::watched_by_valgrind()) {
      const std::size_t carved = range.carved.load(relaxed);
      std::vector<std::uint8_t> is_cold(carved);
      for (const std::uint32_t index : range.cold.indices()) is_cold[index] = 1;
      for (std::size_t index = 0; index < carved; ++index) {
        if (is_cold[index] != 0) continue;
        header_of(range.start_of(index, size_class), size_class, index)->sanitizer.destroy();
      }
    }
    for (const Chunk& chunk : range.chunks) {
      const std::size_t count = chunk.count.load(relaxed);
      if (count != 0) munmap(chunk.base.load(relaxed), count * stride(size_class));
    }
    reserved_by_all.fetch_sub(range.reserved * stride(size_class), relaxed);
  }
  protected_by_all.fetch_sub(protected_.load(relaxed), relaxed);
}

// Reserves one more chunk. If the system refuses the chunk, reserves a smaller chunk.
bool StackSpace::reserve(Range& range, unsigned size_class) {
  if (range.share == 0) range.share = share_of_address_space() / stride(size_class);
  if (!range.may_grow()) return false;
  std::size_t count = std::min(std::max(kFirstChunk / stride(size_class), range.reserved),
                               range.share - range.reserved);
  for (; count >= kFewestStacks; count /= 2) {
    const std::size_t bytes = count * stride(size_class);
    void* base =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
    // A failure is harmless. A huge page under a stack would take 2 MiB where one page is enough.
    (void)madvise(base, bytes, MADV_NOHUGEPAGE);
    // The last block of the previous chunk continues here.
    if (madvise(base, bytes, MADV_DONTDUMP) == 0 && range.reserved != 0) {
      range.in_cores[range.reserved / ColdStacks::kBlock] = 0;
    }
    Chunk& chunk = *std::ranges::find_if(
        range.chunks, [](const Chunk& each) { return each.count.load(relaxed) == 0; });
    // Relaxed: [range] publishes both values.
    chunk.base.store(static_cast<char*>(base), relaxed);
    chunk.count.store(count, relaxed);
    range.reserved += count;
    reserved_by_all.fetch_add(bytes, relaxed);
    return true;
  }
  return false;
}

// Makes a quarter more stacks usable. Calls are few, because the system call stops all threads of
// the process that need memory. If the kernel does not commit that much memory, makes only the
// fewest stacks usable that are worth a call.
bool StackSpace::extend(Range& range, unsigned size_class) {
  if (range.usable == range.reserved && !reserve(range, size_class)) return false;
  const std::size_t left = range.reserved - range.usable;
  const std::size_t least =
      std::min(std::max<std::size_t>(kExtension / stride(size_class), 4), left);
  const std::size_t usual = std::min(std::max(least, range.usable / 4), left);
  // Makes room for every index in advance, because cool() must not fail.
  try {
    range.cold.make_room(range.usable + usual);
    const std::size_t blocks = (range.usable + usual) / ColdStacks::kBlock + 1;
    range.in_cores.resize(std::max(range.in_cores.size(), blocks));
  } catch (const std::bad_alloc&) {
    return false;
  }
  char* start = range.start_of(range.usable, size_class);
  std::size_t count = usual;
  while (mprotect(start, count * stride(size_class), PROT_READ | PROT_WRITE) != 0) {
    if (count == least) return false;
    count = least;
  }
  range.usable += count;
  return true;
}

bool StackSpace::install_guard(char* guard) noexcept {
  if (guard_kind_ == GuardKind::lightweight) {
    if (madvise(guard, kGuardBytes, kGuardInstall) == 0) return true;
    // The kernel refuses guards in locked memory (mlockall), so unlock the page and try once more.
    if (munlock(guard, kGuardBytes) == 0 && madvise(guard, kGuardBytes, kGuardInstall) == 0) {
      return true;
    }
  }
  if (protected_by_all.fetch_add(1, relaxed) < detail::computed_once<&most_protected>() &&
      mprotect(guard, kGuardBytes, PROT_NONE) == 0) {
    protected_.fetch_add(1, relaxed);
    return true;
  }
  protected_by_all.fetch_sub(1, relaxed);
  return false;
}

// Installs the guards of the bare picks, one after another, until the kernel refuses a guard.
// Returns how many guards it has installed. One system call installs all of them if the kernel
// takes advice about several ranges of the caller's process.
unsigned StackSpace::install_guards(const Range& range, unsigned size_class,
                                    const Picks& picks) noexcept {
  std::array<iovec, kMostAtOnce> guards;
  unsigned count = 0;
  for (const std::uint32_t index : picks.bare()) {
    guards[count++] = {range.start_of(index, size_class), kGuardBytes};
  }
  if (guard_kind_ == GuardKind::lightweight && count > 1) {
    const long done =
        syscall(SYS_process_madvise, kPidfdSelf, guards.data(), count, kGuardInstall, 0);
    if (done == static_cast<long>(count * kGuardBytes)) return count;
  }
  unsigned installed = 0;
  while (installed < count && install_guard(static_cast<char*>(guards[installed].iov_base))) {
    ++installed;
  }
  return installed;
}

// Requests the uppermost page of each pick from the kernel in one system call. Without the call,
// each fiber that starts on such a stack would cause a page fault, which takes 1.5 us; the call
// takes 1.1 us a page.
void StackSpace::provide_pages(const Range& range, unsigned size_class,
                               const Picks& picks) noexcept {
  if (picks.count < 2 || !can_provide_.load(relaxed)) return;
  std::array<iovec, kMostAtOnce> pages;
  for (unsigned i = 0; i < picks.count; ++i) {
    char* const start = range.start_of(picks.indices[i], size_class);
    pages[i] = {top_of(start, size_class) - kPage, kPage};
  }
  const long done =
      syscall(SYS_process_madvise, kPidfdSelf, pages.data(), picks.count, kPopulateWrite, 0);
  // An older kernel, or a filter of system calls, refuses the call. Page faults then provide the
  // pages.
  if (done < 0) can_provide_.store(false, relaxed);
}

// Picks up to `count` stacks: cold stacks with guards, then bare cold stacks, then stacks that have
// never been picked.
StackSpace::Picks StackSpace::pick(Range& range, unsigned size_class, unsigned count) {
  Picks picks;
  const detail::Guard lock(mutex_);
  const ColdStacks::Taken taken = range.cold.take(std::span(picks.indices).first(count));
  picks.count = picks.used = taken.count;
  picks.guarded = taken.guarded;
  std::size_t carved = range.carved.load(relaxed);
  for (; picks.count < count; ++carved) {
    if (carved == range.usable && !extend(range, size_class)) break;
    picks.add(static_cast<std::uint32_t>(carved));
  }
  WEFT_INVARIANT(carved <= range.usable && range.usable <= range.reserved,
                 "StackSpace I1: stacks above `carved` have never been used");
  WEFT_INVARIANT(range.cold.size() + picks.count <= carved,
                 "StackSpace I2: cold stacks were carved");
  range.carved.store(carved, release);  // [range]
  bring_into_cores(range, size_class, picks);
  return picks;
}

// Puts back all picks after the first `guarded` picks, because they have no guard.
void StackSpace::put_back(Range& range, Picks& picks, unsigned guarded) noexcept {
  if (guarded == picks.count) return;
  const detail::Guard lock(mutex_);
  range.cold.add_bare(std::span(picks.indices).subspan(guarded, picks.count - guarded));
  picks.count = guarded;
}

// Prepares the pick with the number `number` for its first fiber. A cold stack's memory reads as
// zeros, as does a new header. So this function does not write the header again, because a dump may
// still be reading it.
Stack* StackSpace::set_up(const Range& range, unsigned size_class, const Picks& picks,
                          unsigned number) noexcept {
  const std::uint32_t index = picks.indices[number];
  char* const start = range.start_of(index, size_class);
  Stack* header = header_of(start, size_class, index);
  char* lowest = start + kGuardBytes;
  // New stacks also need this call, because an earlier owner may have used these addresses.
  SanitizerStack::unpoison(lowest, extent(size_class));
  Stack* stack =
      number < picks.used ? std::launder(header) : ::new (static_cast<void*>(header)) Stack;
  stack->index = index;
  stack->lowest = lowest;
  stack->size_class = static_cast<std::uint8_t>(size_class);
  const auto size = static_cast<std::size_t>(reinterpret_cast<char*>(header) - lowest);
  stack->sanitizer.create(lowest, size);
  stack->context.store(make_context(header, size, entry_), relaxed);
  return stack;
}

Stack* StackSpace::take(unsigned size_class, unsigned count) {
  Range& range = ranges_[size_class];
  Picks picks = pick(range, size_class, std::min(count, kMostAtOnce));
  // This call runs outside the lock, because the kernel marks the guards page by page, and clears a
  // page for each stack.
  put_back(range, picks, picks.guarded + install_guards(range, size_class, picks));
  provide_pages(range, size_class, picks);
  Stack* chain = nullptr;
  for (unsigned i = picks.count; i-- > 0;) {
    Stack* stack = set_up(range, size_class, picks, i);
    stack->next = chain;
    chain = stack;
  }
  return chain;
}

// One system call for all ranges takes less than half the time of a call for each range.
void StackSpace::give_pages_back(const std::array<iovec, kMostAtOnce>& ranges,
                                 unsigned count) noexcept {
  if (count > 1 && can_give_back_.load(relaxed)) {
    std::size_t bytes = 0;
    for (unsigned i = 0; i < count; ++i) bytes += ranges[i].iov_len;
    const long done =
        syscall(SYS_process_madvise, kPidfdSelf, ranges.data(), count, MADV_DONTNEED, 0);
    if (done == static_cast<long>(bytes)) return;
    // An older kernel, a filter of system calls, or locked memory refuses the call.
    if (done < 0) can_give_back_.store(false, relaxed);
  }
  for (unsigned i = 0; i < count; ++i) {
    (void)madvise(ranges[i].iov_base, ranges[i].iov_len, MADV_DONTNEED);
  }
}

void StackSpace::cool(Stack* chain) noexcept {
  while (chain != nullptr) {
    const unsigned size_class = chain->size_class;
    Range& range = ranges_[size_class];
    std::array<std::uint32_t, kMostAtOnce> indices;
    std::array<iovec, kMostAtOnce> ranges;
    unsigned count = 0;
    for (; chain != nullptr && chain->size_class == size_class && count < kMostAtOnce; ++count) {
      Stack& stack = *chain;
      chain = stack.next;
      indices[count] = stack.index;
      ranges[count] = {stack.lowest, extent(size_class)};
      stack.sanitizer.destroy();
    }
    give_pages_back(ranges, count);
    const detail::Guard lock(mutex_);
    range.cold.add(std::span(indices).first(count));
    note_cold(range);
    WEFT_INVARIANT(range.cold.size() <= range.carved.load(relaxed),
                   "StackSpace I2: a stack is cold once");
  }
}

StackSpace::Counts StackSpace::counts() noexcept {
  const detail::Guard lock(mutex_);
  Counts counts;
  for (const Range& range : ranges_) {
    counts.carved += range.carved.load(relaxed) - range.cold.bare();
    counts.cold += range.cold.guarded();
  }
  return counts;
}

bool StackSpace::is_used_up(unsigned size_class) noexcept {
  const std::lock_guard lock(mutex_);
  const Range& range = ranges_[size_class];
  return range.reserved != 0 && !range.may_grow() && range.carved.load(relaxed) == range.reserved;
}

StackSpace::Place StackSpace::find_place(const void* address) const noexcept {
  const auto* byte = static_cast<const char*>(address);
  for (unsigned size_class = 0; size_class < kStackSizes; ++size_class) {
    const std::size_t carved = ranges_[size_class].carved.load(acquire);  // [range]
    std::size_t first = 0;
    for (auto chunk = ranges_[size_class].chunks.begin(); first < carved; ++chunk) {
      // Relaxed: [range].
      char* const base = chunk->base.load(relaxed);
      const std::size_t count = std::min(chunk->count.load(relaxed), carved - first);
      if (byte >= base && byte < base + count * stride(size_class)) {
        const auto offset = static_cast<std::size_t>(byte - base);
        const std::size_t in_stack = offset % stride(size_class);
        return {base + (offset - in_stack), size_class, first + offset / stride(size_class),
                in_stack < kGuardBytes};
      }
      first += count;
    }
  }
  return {};
}

const Stack* StackSpace::find_overflowed(const void* address,
                                         std::size_t& stack_size) const noexcept {
  const Place place = find_place(address);
  if (place.start == nullptr || !place.in_guard) return nullptr;
  stack_size = stack_bytes(place.size_class);
  return header_of(place.start, place.size_class, place.index);
}

const char* StackSpace::find_top(const void* address) const noexcept {
  const Place place = find_place(address);
  if (place.start == nullptr || place.in_guard) return nullptr;
  return top_of(place.start, place.size_class);
}

}  // namespace weft::fibers
