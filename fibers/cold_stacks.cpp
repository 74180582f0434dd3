#include "fibers/cold_stacks.hpp"

#include <algorithm>
#include <weft/detail/invariant.hpp>

namespace weft::fibers {

void ColdStacks::make_room(std::size_t usable) {
  if (indices_.capacity() < usable) indices_.reserve(usable * 2);
  is_bare_.resize(std::max(is_bare_.size(), usable));
  blocks_.resize(std::max(blocks_.size(), usable / kBlock + 1));
}

void ColdStacks::add(std::span<const std::uint32_t> indices) noexcept {
  indices_.insert(indices_.end(), indices.begin(), indices.end());
  for (const std::uint32_t index : indices) {
    std::uint16_t& count = blocks_[index / kBlock];
    ++count;
    WEFT_INVARIANT(count <= kBlock, "ColdStacks I1: a stack is cold once");
  }
}

void ColdStacks::add_bare(std::span<const std::uint32_t> indices) noexcept {
  indices_.insert(indices_.begin(), indices.begin(), indices.end());
  for (const std::uint32_t index : indices) is_bare_[index] = 1;
  bare_ += indices.size();
}

ColdStacks::Taken ColdStacks::take(std::span<std::uint32_t> taken) noexcept {
  const std::size_t count = std::min(taken.size(), indices_.size());
  std::copy_n(indices_.rbegin(), count, taken.begin());
  indices_.resize(indices_.size() - count);
  const auto first_bare =
      std::stable_partition(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(count),
                            [this](std::uint32_t index) { return is_bare_[index] == 0; });
  const auto guarded = static_cast<std::size_t>(first_bare - taken.begin());
  for (const std::uint32_t index : taken.first(guarded)) --blocks_[index / kBlock];
  for (const std::uint32_t index : taken.subspan(guarded, count - guarded)) {
    is_bare_[index] = 0;
    if (blocks_[index / kBlock] == kStripped) blocks_[index / kBlock] = 0;
  }
  bare_ -= count - guarded;
  return {static_cast<unsigned>(count), static_cast<unsigned>(guarded)};
}

ColdStacks::Run ColdStacks::find_blocks(std::size_t most, std::size_t kept) const noexcept {
  if (guarded() < kept + kBlock) return {};
  most = std::min(most, (guarded() - kept) / kBlock);
  std::size_t end = blocks_.size();
  while (end > 0 && blocks_[end - 1] != kBlock) --end;
  std::size_t first = end;
  while (first > 0 && end - first < most && blocks_[first - 1] == kBlock) --first;
  return {first * kBlock, (end - first) * kBlock};
}

void ColdStacks::strip(const Run& run) noexcept {
  std::fill_n(is_bare_.begin() + static_cast<std::ptrdiff_t>(run.first), run.count,
              std::uint8_t{1});
  std::fill_n(blocks_.begin() + static_cast<std::ptrdiff_t>(run.first / kBlock), run.count / kBlock,
              kStripped);
  bare_ += run.count;
}

ColdStacks::Run ColdStacks::with_neighbours(const Run& run) const noexcept {
  std::size_t first = run.first / kBlock;
  std::size_t end = first + run.count / kBlock;
  if (first > 0 && blocks_[first - 1] == kStripped) --first;
  if (end < blocks_.size() && blocks_[end] == kStripped) ++end;
  return {first * kBlock, (end - first) * kBlock};
}

void ColdStacks::sort() noexcept {
  (void)std::partition(indices_.begin(), indices_.end(),
                       [this](std::uint32_t index) { return is_bare_[index] != 0; });
}

}  // namespace weft::fibers
