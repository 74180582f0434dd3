#include <weft/profile.hpp>

#include <cerrno>
#include <chrono>
#include <future>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/detail/simulated.hpp>
#include <weft/error.hpp>
#include <weft/this_fiber.hpp>
#include <weft/until.hpp>

#include "base/printable.hpp"
#include "observe/profile_stacks.hpp"
#include "observe/recording.hpp"
#include "scheduler/processor_samples.hpp"

namespace weft::observe {

namespace {

using namespace std::chrono_literals;
using scheduler::ProcessorSample;
using scheduler::ProcessorSampler;

constexpr std::chrono::nanoseconds kPeriod = 10ms;

std::error_code system_code(int number) { return {number, std::system_category()}; }

// Why the wait for a recording has ended before its time.
std::error_code early_end() {
  const Until until = Until::ambient();
  return until.is_over() ? until.error() : Errc::cancelled;
}

ProfileStack stack_of(const ProcessorSample& sample) {
  ProfileStack stack;
  stack.fiber = sample.is_fiber ? sample.name.data() : "[worker]";
  base::make_printable(stack.fiber);
  if (sample.type != nullptr && *sample.type != typeid(void)) stack.type = sample.type;
  if (stack.fiber.empty() && stack.type == nullptr) stack.fiber = "[fiber]";
  const auto& calls = sample.calls;
  stack.calls.assign(calls.frames.begin(),
                     calls.frames.begin() + static_cast<std::ptrdiff_t>(calls.count));
  return stack;
}

// On a thread of its own, so that busy workers do not hold it up.
Profile collect_samples(const std::stop_token& end) {
  constexpr unsigned kRoundsForNewWorkers = 16;
  Profile profile;
  profile.counts = "samples";
  profile.times = "cpu";
  profile.period = kPeriod;
  const auto see = [&profile](const ProcessorSample& sample) {
    const auto time = static_cast<std::int64_t>(sample.count) * kPeriod.count();
    profile.add(stack_of(sample), {sample.count, time});
  };
  ProcessorSampler sampler(kPeriod);
  for (unsigned round = 1; !end.stop_requested(); ++round) {
    std::this_thread::sleep_for(5ms);
    sampler.drain(see);
    if (round % kRoundsForNewWorkers == 0) sampler.follow_workers();
  }
  sampler.drain(see);
  profile.lost = ProcessorSampler::lost();
  return profile;
}

// A thread that collects until finish() ends it, or the destructor.
class Collection {
 public:
  using Collect = Profile (*)(const std::stop_token&);

  explicit Collection(Collect collect)
      : profile_(std::async(std::launch::async, collect, end_.get_token())) {}
  ~Collection() { end_.request_stop(); }
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  // Blocks for some milliseconds. Throws what the thread has thrown.
  Profile finish() {
    end_.request_stop();
    Profile profile = profile_.get();
    profile.begin = std::chrono::nanoseconds(begin_.time_since_epoch()).count();
    profile.duration = std::chrono::steady_clock::now() - since_;
    return profile;
  }

 private:
  std::stop_source end_;
  const std::chrono::system_clock::time_point begin_ = std::chrono::system_clock::now();
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::future<Profile> profile_;
};

Result<std::string> record(const profile::Options& options, const Wait& wait,
                           Collection::Collect collect) {
  Collection collection(collect);
  const bool is_whole = wait(Deadline::after(options.duration));
  // On a helper thread, as names take a while and much of a stack.
  std::string text = blocking([&] {
    const Profile profile = collection.finish();
    if (!is_whole) return std::string();
    return options.format == profile::Format::pprof ? as_pprof(profile) : as_folded(profile);
  });
  return {std::move(text), is_whole ? std::error_code() : early_end()};
}

bool has_samples() noexcept { return !fibers::kSanitized && !detail::is_simulated(); }

detail::Atomic<bool> processor_is_taken{false};

}  // namespace

Result<std::string> record_processor(const profile::Options& options, const Wait& wait) {
  if (!has_samples()) return {{}, system_code(EOPNOTSUPP)};
  const RecordingTurn turn(processor_is_taken);
  if (!turn.is_mine()) return {{}, system_code(EINPROGRESS)};
  if (!ProcessorSampler::prepare()) return {{}, system_code(EBUSY)};
  return record(options, wait, &collect_samples);
}

}  // namespace weft::observe

namespace weft::profile {

Result<std::string> processor(const Options& options) {
  return observe::record_processor(
      options, [](Deadline end) { return this_fiber::sleep_until(end, Until::ambient()); });
}

}  // namespace weft::profile
