// Free stacks whose memory has been given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::fibers {

// Contains the indices of the cold stacks of one range, in LIFO order. A bare stack has no guard,
// because the system refused the guard, or the guard was removed with the page tables. Page tables
// are given back for whole blocks of stacks, once each stack of the block is cold. Not thread-safe.
// Invariants
//   I1  A block's count is the number of its cold stacks with guards. If the count is kStripped,
//       each stack of the block is cold and bare.
class ColdStacks {
 public:
  // For stacks of the default size, the page tables of a block occupy 18 pages.
  static constexpr std::size_t kBlock = 256;

  // Makes room for all stacks with indices below `usable`, so that the other functions do not fail.
  // Throws std::bad_alloc.
  void make_room(std::size_t usable);
  [[nodiscard]] std::size_t size() const noexcept { return indices_.size(); }
  [[nodiscard]] std::size_t bare() const noexcept { return bare_; }
  [[nodiscard]] std::size_t guarded() const noexcept { return indices_.size() - bare_; }
  [[nodiscard]] std::span<const std::uint32_t> indices() const noexcept { return indices_; }

  // Adds stacks with guards, which take() returns first.
  void add(std::span<const std::uint32_t> indices) noexcept;
  // Adds stacks without guards, which take() returns last.
  void add_bare(std::span<const std::uint32_t> indices) noexcept;
  // Moves cold stacks to `taken`, stacks with guards first. Returns how many stacks it has moved,
  // and how many of them have guards.
  struct Taken {
    unsigned count = 0;
    unsigned guarded = 0;
  };
  [[nodiscard]] Taken take(std::span<std::uint32_t> taken) noexcept;

  // Describes stacks with consecutive indices.
  struct Run {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  // Returns the highest whole blocks with guards, at most `most` blocks. At least `kept` stacks
  // with guards remain; if fewer would remain, returns no blocks. strip() records that their guards
  // are gone.
  [[nodiscard]] Run find_blocks(std::size_t most, std::size_t kept) const noexcept;
  void strip(const Run& run) noexcept;
  [[nodiscard]] bool has_whole_block(std::size_t block) const noexcept {
    return block < blocks_.size() && blocks_[block] >= kBlock;
  }
  // Returns the run with adjacent stripped blocks added, because adjacent blocks share page tables.
  [[nodiscard]] Run with_neighbours(const Run& run) const noexcept;
  // Reorders the stacks so that stacks with guards are taken first. Takes some milliseconds for a
  // million stacks.
  void sort() noexcept;

 private:
  static constexpr std::uint16_t kStripped = 0xffff;

  std::vector<std::uint32_t> indices_;
  // By index; 0 for stacks that are not cold. Bytes, because std::vector<bool> adds 2 KB to
  // programs.
  std::vector<std::uint8_t> is_bare_;
  std::vector<std::uint16_t> blocks_;  // I1
  std::size_t bare_ = 0;
};

}  // namespace weft::fibers
