// Counts durations by length.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

// Counts durations in buckets. Each duration below 16 ns has its own bucket; above that, each range
// from 2^n to 2^(n+1) ns has 8 buckets. A histogram occupies 4 KB. record() does not allocate. The
// error of a percentile is below 12.5 %.
// Context: plain value.
class Histogram {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // Counts `duration`; a negative duration counts as 0.
  void record(Nanoseconds duration) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<Nanoseconds::rep>(0, duration.count()));
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += value;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
  // Adds the counts of `other`.
  void merge(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  // Returns the number of recorded durations.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  // Returns the exact minimum, or 0 if no duration was recorded.
  [[nodiscard]] Nanoseconds min() const noexcept { return duration(count_ == 0 ? 0 : min_); }
  // Returns the exact maximum, or 0 if no duration was recorded.
  [[nodiscard]] Nanoseconds max() const noexcept { return duration(max_); }
  // Returns the exact sum of the durations; the sum never decreases.
  [[nodiscard]] Nanoseconds sum() const noexcept { return duration(sum_); }
  // Returns the mean, rounded down, or 0 if no duration was recorded.
  [[nodiscard]] Nanoseconds mean() const noexcept {
    return duration(count_ == 0 ? 0 : sum_ / count_);
  }
  // Returns a duration that `percent` % of all durations do not exceed: 50 gives the median, 100
  // gives max(). The result is at most 12.5 % too large. Returns 0 if no duration was recorded.
  // `percent` is clamped to [0, 100].
  [[nodiscard]] Nanoseconds percentile(double percent) const noexcept {
    const double rank = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_);
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      passed += buckets_[i];
      if (passed > 0 && static_cast<double>(passed) >= rank) {
        return duration(std::min(last_of(i), max_));
      }
    }
    return max();
  }

 private:
  static constexpr unsigned kBits = 3;  // The range from 2^n to 2^(n+1) has 2^kBits buckets.
  static constexpr std::size_t kParts = std::size_t{1} << kBits;
  static constexpr std::size_t kBuckets = (63 - kBits + 1) * kParts;

  static_assert(sizeof(Nanoseconds::rep) == 8);

  // The highest set bit of a value selects its range, and the next kBits bits select the bucket.
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < kParts) return value;
    const auto power = static_cast<unsigned>(std::bit_width(value)) - 1 - kBits;
    return power * kParts + (value >> power);
  }
  // Returns the longest duration that `bucket` counts.
  [[nodiscard]] static constexpr std::uint64_t last_of(std::size_t bucket) noexcept {
    if (bucket < 2 * kParts) return bucket;
    const std::size_t power = bucket / kParts - 1;
    const std::uint64_t part = bucket % kParts + kParts;
    return ((part + 1) << power) - 1;
  }
  [[nodiscard]] static Nanoseconds duration(std::uint64_t value) noexcept {
    return Nanoseconds(static_cast<Nanoseconds::rep>(value));
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
};

}  // namespace weft
