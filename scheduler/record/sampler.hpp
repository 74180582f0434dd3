// Samples how long some runnable fibers wait, and how long they run.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <weft/detail/atomic.hpp>

namespace weft::fibers {
struct Fiber;
}

namespace weft::scheduler {

// A histogram of durations with powers of two as bounds. One worker writes the counts; any thread
// reads them. All accesses are relaxed, because the counts are statistics.
class Durations {
 public:
  // Bucket i counts the durations below 2^i ns that are too long for bucket i - 1. The last bucket
  // counts all longer durations, that is, more than four minutes.
  static constexpr std::size_t kBuckets = 40;

  void record(std::int64_t nanoseconds) noexcept {
    const auto value = static_cast<std::uint64_t>(nanoseconds < 0 ? 0 : nanoseconds);
    const auto bucket = static_cast<std::size_t>(std::bit_width(value));
    add(counts_[bucket < kBuckets ? bucket : kBuckets - 1], 1);
    add(sum_, value);
    if (value > max_.load(detail::relaxed)) max_.store(value, detail::relaxed);
  }
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].load(detail::relaxed);
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.load(detail::relaxed); }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_.load(detail::relaxed); }

 private:
  using Number = detail::Atomic<std::uint64_t>;
  static void add(Number& number, std::uint64_t more) noexcept {
    number.store(number.load(detail::relaxed) + more, detail::relaxed);
  }

  std::array<Number, kBuckets> counts_{};
  Number sum_{0};
  Number max_{0};
};

// Follows one fiber at a time, and about 1000 fibers per second. A sample begins when the worker
// next makes a fiber runnable, and ends when the fiber has run and left the worker. The sampler
// reads the clock only when the fiber becomes runnable, runs and leaves. It adds only one branch to
// the hot paths. If a thief may have stolen the fiber, the thief's sampler can follow it too. The
// worker that runs the fiber records the sample. The worker owns each member, unless the member's
// comment names another owner.
// Order
//   [sample]  ready() stores fiber_ (release) -> a thief's adopt() loads it (acquire): the thief
//             sees ready_since_. The worker that runs the fiber sets fiber_ to null (acq_rel).
//             While fiber_ is null, only the worker that owns this sampler changes it.
class Sampler {
 public:
  [[nodiscard]] bool is_due(std::int64_t now) const noexcept { return now >= next_; }
  // Returns whether ready() must be called for the next fiber that becomes ready.
  [[nodiscard]] bool is_armed() const noexcept { return phase_ == Phase::armed; }
  [[nodiscard]] bool is_following() const noexcept {
    return phase_ == Phase::waiting || phase_ == Phase::running;
  }
  // Must only be called if is_due() returns true.
  void begin(std::int64_t now) noexcept;

  // Called when a fiber becomes ready on this worker. Returns whether is_armed() may have changed.
  bool ready(const fibers::Fiber& fiber) noexcept {
    if (phase_ != Phase::armed) return false;
    follow(fiber);
    return true;
  }
  // Called when the previous fiber has left and `next` begins to run; a null `next` stands for
  // the idle stack. Returns whether is_armed() may have changed.
  bool run(const fibers::Fiber* next) noexcept {
    if (phase_ == Phase::running) {
      finish();
    } else if (phase_ != Phase::waiting) {
      return false;
    } else if (source_->fiber_.load(detail::relaxed) != followed_) {
      phase_ = Phase::off;  // Another worker has taken the sample, or the sample has expired.
    } else if (next == followed_) {
      arrive();
    } else {
      return false;
    }
    return true;
  }
  // Called when fibers have been stolen from the owner of `victim`. Returns true if this sampler
  // now also follows the fiber that `victim` follows, because that fiber may have been stolen.
  [[nodiscard]] bool adopt(Sampler& victim) noexcept;

  // Any thread may call these functions.
  [[nodiscard]] const Durations& latencies() const noexcept { return latencies_; }
  [[nodiscard]] const Durations& runs() const noexcept { return runs_; }

 private:
  enum class Phase : std::uint8_t { off, armed, waiting, running };

  void follow(const fibers::Fiber& fiber) noexcept;
  void arrive() noexcept;
  void finish() noexcept;

  Phase phase_ = Phase::off;
  std::int64_t next_ = 0;
  const fibers::Fiber* followed_ = nullptr;
  Sampler* source_ = nullptr;  // The sampler that began the sample; the scheduler owns it.
  std::int64_t running_since_ = 0;
  // The fiber that has become ready on this worker and has not run yet, or null.
  detail::Atomic<const fibers::Fiber*> fiber_{nullptr};
  detail::Atomic<std::int64_t> ready_since_{0};  // Relaxed: the later store to fiber_ publishes it.
  Durations latencies_;
  Durations runs_;
};

}  // namespace weft::scheduler
