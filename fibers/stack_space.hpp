// The address space from which stacks are carved.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "fibers/cold_stacks.hpp"
#include "fibers/stack.hpp"

namespace weft::fibers {

// The function in which each new stack starts; it calls arrive() first.
using StackMain = void (*)(Arrival);

// Gives back the pages of `stack` below `frame`. The caller must run on that stack. Does nothing if
// the frame is on another stack.
void give_back_below(const Stack& stack, const void* frame) noexcept;

// The ways to make an access to the pages below a stack fault.
enum class GuardKind : std::uint8_t {
  lightweight,  // madvise(MADV_GUARD_INSTALL), Linux 6.13 and later: no separate mapping.
  protection,   // mprotect(PROT_NONE): two mappings a stack, of which the kernel allows 65 530.
};

// The size of the guard below each stack, where each access faults. A frame of up to this size
// cannot reach past the guard into the next stack. A one-page guard would save 0.3 us per new
// stack.
inline constexpr std::size_t kGuardBytes = std::size_t{64} << 10;

// Has one range of stacks for each size. A range grows by chunks of reserved addresses, each as
// large as all earlier chunks together. A chunk is made usable piece by piece. Every stack has a
// guard below it. Stacks are never unmapped one by one. A free stack without memory is cold; take()
// returns cold stacks before it carves new stacks. Any thread may call the functions. A mutex
// suffices for the data, because no hot path uses it.
// Invariants, per range
//   I1  Stacks [0, carved) have their guards, except bare stacks and stacks that are being taken;
//       higher stacks have never been used.
//   I2  A cold stack is in `cold`, has no pages, and no other data refers to it.
//   I3  A core file includes each block of ColdStacks::kBlock stacks with a stack in use, unless
//       the system refused the advice. Not asserted, because only the kernel's list of mappings
//       shows it.
class StackSpace {
 public:
  // The number of cold stacks of each size that keep guards and page tables (288 bytes each).
  static constexpr std::size_t kTablesKept = std::size_t{16} << 10;

  explicit StackSpace(StackMain entry, std::size_t tables_kept = kTablesKept) noexcept;
  ~StackSpace();
  StackSpace(const StackSpace&) = delete;
  StackSpace& operator=(const StackSpace&) = delete;

  // Returns up to `count` stacks of the size, at most 32, linked through `next`. Cold stacks come
  // first. Returns null if the system refuses memory or mappings, or the range is used up.
  [[nodiscard]] Stack* take(unsigned size_class, unsigned count);
  // Gives the memory of a chain of free stacks back to the system and keeps their addresses.
  void cool(Stack* chain) noexcept;

  // Gives page tables of cold stacks back if the kernel supports it. A call handles some hundred
  // stacks; `tables_kept` stacks of each size keep their tables. Returns true if more may be left.
  bool give_tables_back() noexcept;
  [[nodiscard]] bool has_spare_tables_hint() const noexcept {
    return has_spare_tables_.load(detail::relaxed);
  }

  // Excludes blocks of cold stacks from core files, some blocks at a time. Returns true if more
  // blocks may be left.
  bool leave_out_of_cores() noexcept;
  [[nodiscard]] bool has_cold_blocks_hint() const noexcept {
    return has_cold_blocks_.load(detail::relaxed);
  }

  // Excludes the stack memory below the calls of parked fibers from the core file of a process that
  // is about to end. The stack with the address `kept` stays whole. So do stacks for which the
  // number `mappings` does not suffice; each stack, with its guard, takes two mappings. Takes no
  // lock. Returns how many mappings are left, or 0 once the system refuses a call.
  std::size_t leave_unused_parts_out_of_core(const void* kept, std::size_t mappings) const noexcept;

  // Returns how many stacks have a guard by protection. Each such guard divides a mapping.
  [[nodiscard]] std::size_t protected_hint() const noexcept {
    return protected_.load(detail::relaxed);
  }

  struct Counts {
    std::uint64_t carved = 0;
    std::uint64_t cold = 0;
  };
  [[nodiscard]] Counts counts() noexcept;
  // Returns whether each reserved address for stacks of this size belongs to a stack.
  [[nodiscard]] bool is_used_up(unsigned size_class) noexcept;
  [[nodiscard]] GuardKind guard_kind() const noexcept { return guard_kind_; }

  // Returns the stack in whose guard `address` is, or null. Takes no lock, because the overflow
  // report calls it from a signal handler. The stack may be cold; its header is then all zeros.
  [[nodiscard]] const Stack* find_overflowed(const void* address,
                                             std::size_t& stack_size) const noexcept;
  // Returns the upper end of the stack in whose memory `address` is; null if it is in no stack.
  // Takes no lock.
  [[nodiscard]] const char* find_top(const void* address) const noexcept;

 private:
  // The place of an address: in the memory of the stack `index`, or in the guard below that stack.
  struct Place {
    char* start = nullptr;  // The beginning of the guard; null if the address is in no stack.
    unsigned size_class = 0;
    std::size_t index = 0;
    bool in_guard = false;
  };
  // Takes no lock.
  [[nodiscard]] Place find_place(const void* address) const noexcept;

  // Addresses that one call has reserved for consecutive stacks.
  struct Chunk {
    detail::Atomic<char*> base{nullptr};
    detail::Atomic<std::size_t> count{0};  // Stacks.
  };
  static constexpr std::size_t kMostChunks = 16;
  // The minimum number of stacks in a chunk; a smaller chunk would not be worth a mapping.
  static constexpr std::size_t kFewestStacks = 4;
  struct Range {
    // Order
    //   [range]  pick stores carved (release) -> find_place loads it (acquire): the chunks of these
    //            stacks are set, and the pages may be accessed.
    std::array<Chunk, kMostChunks> chunks;
    // The number of stacks that all chunks together may have; 0 before the first chunk.
    std::size_t share = 0;
    std::size_t reserved = 0;  // The number of stacks that the chunks have.
    std::size_t usable = 0;    // The number of stacks whose pages may be accessed.
    detail::Atomic<std::size_t> carved{0};
    ColdStacks cold;
    std::vector<std::uint8_t> in_cores = {};  // I3, by block of `cold`: 1 or 0.

    // Returns the lowest address of the guard of a stack, whose addresses must be reserved.
    [[nodiscard]] char* start_of(std::size_t index, unsigned size_class) const noexcept;
    // Returns false if the system refuses the advice for at least some of the stacks.
    bool advise(const ColdStacks::Run& run, unsigned size_class, int advice) const noexcept;
    [[nodiscard]] bool may_grow() const noexcept {
      return reserved + kFewestStacks <= share && chunks.back().count.load(detail::relaxed) == 0;
    }
  };

  [[nodiscard]] bool reserve(Range& range, unsigned size_class);
  [[nodiscard]] bool extend(Range& range, unsigned size_class);
  static constexpr unsigned kMostAtOnce = 32;
  // Stacks that take() is about to return. Stacks that have been used before come first; among
  // these, stacks with guards come first.
  struct Picks {
    std::array<std::uint32_t, kMostAtOnce> indices;
    unsigned count = 0;
    unsigned used = 0;
    unsigned guarded = 0;

    void add(std::uint32_t index) noexcept { indices[count++] = index; }
    [[nodiscard]] std::span<const std::uint32_t> bare() const noexcept {
      return std::span(indices).subspan(guarded, count - guarded);
    }
  };

  [[nodiscard]] bool install_guard(char* guard) noexcept;
  [[nodiscard]] unsigned install_guards(const Range& range, unsigned size_class,
                                        const Picks& picks) noexcept;
  void provide_pages(const Range& range, unsigned size_class, const Picks& picks) noexcept;
  [[nodiscard]] Picks pick(Range& range, unsigned size_class, unsigned count);
  void put_back(Range& range, Picks& picks, unsigned guarded) noexcept;
  [[nodiscard]] Stack* set_up(const Range& range, unsigned size_class, const Picks& picks,
                              unsigned number) noexcept;

  void bring_into_cores(Range& range, unsigned size_class, const Picks& picks) noexcept;
  void note_cold(const Range& range) noexcept;
  [[nodiscard]] bool release_tables(const Range& range, unsigned size_class,
                                    const ColdStacks::Run& run) noexcept;
  void give_pages_back(const std::array<iovec, kMostAtOnce>& ranges, unsigned count) noexcept;

  StackMain entry_;
  const std::size_t tables_kept_;
  GuardKind guard_kind_;
  // The number of guards that are separate mappings. Relaxed: a count, which the destructor
  // subtracts from the count of the process.
  detail::Atomic<std::size_t> protected_{0};
  // Whether the kernel accepts advice about several ranges at once. Relaxed: a thread whose call
  // the kernel refuses clears the flag.
  detail::Atomic<bool> can_provide_{true};
  detail::Atomic<bool> can_give_back_{true};
  // Relaxed: a hint.
  detail::Atomic<bool> has_spare_tables_{false};
  detail::Atomic<bool> has_cold_blocks_{false};
  detail::ThreadMutex mutex_;
  std::array<Range, kStackSizes> ranges_;
};

}  // namespace weft::fibers
