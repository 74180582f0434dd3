#include <weft/profile.hpp>

#include <cerrno>
#include <chrono>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/detail/simulated.hpp>
#include <weft/detail/waist.hpp>
#include <weft/error.hpp>
#include <weft/this_fiber.hpp>
#include <weft/until.hpp>

#include "base/printable.hpp"
#include "runtime/other_thread.hpp"
#include "runtime/profile_stacks.hpp"
#include "runtime/recording.hpp"
#include "scheduler/processor_samples.hpp"
#include "scheduler/record/wait_samples.hpp"

namespace weft::runtime {

namespace {

using namespace std::chrono_literals;
using detail::WaitReason;
using scheduler::ProcessorSample;
using scheduler::ProcessorSampler;
using scheduler::WaitRecording;
using scheduler::WaitSample;

constexpr std::chrono::nanoseconds kPeriod = 10ms;
// A collector passes on the available samples after each round.
constexpr std::chrono::nanoseconds kRound = 5ms;

std::error_code system_code(int number) { return {number, std::system_category()}; }

// The reason why the wait for a recording ended early.
std::error_code early_end() {
  const Until until = Until::ambient();
  return until.is_over() ? until.reason() : Errc::cancelled;
}

ProfileStack make_stack(const char* name, const std::type_info* type,
                        const fibers::Backtrace& calls) {
  ProfileStack stack;
  stack.fiber = name;
  base::make_printable(stack.fiber);
  stack.type = type;
  if (stack.fiber.empty() && stack.type == nullptr) stack.fiber = "[fiber]";
  stack.calls.assign(calls.frames.begin(),
                     calls.frames.begin() + static_cast<std::ptrdiff_t>(calls.count));
  return stack;
}

// Runs on a separate thread, so that busy workers do not delay it.
Profile collect_samples(const std::stop_token& end) {
  constexpr unsigned kRoundsForNewWorkers = 16;
  Profile profile;
  profile.counts = "samples";
  profile.times = "cpu";
  profile.period = kPeriod;
  const auto see = [&profile](const ProcessorSample& sample) {
    const auto time = static_cast<std::int64_t>(sample.count) * kPeriod.count();
    const char* name = sample.is_fiber ? sample.name.data() : "[worker]";
    profile.add(make_stack(name, sample.type, sample.calls), {sample.count, time});
  };
  ProcessorSampler sampler(kPeriod);
  for (unsigned round = 1; !end.stop_requested(); ++round) {
    std::this_thread::sleep_for(kRound);
    sampler.drain(see);
    if (round % kRoundsForNewWorkers == 0) sampler.follow_workers();
  }
  sampler.drain(see);
  profile.lost = ProcessorSampler::lost();
  return profile;
}

template <class... Reasons>
constexpr scheduler::WaitReasons set_of(Reasons... reasons) {
  return (scheduler::reasons_of(reasons) | ...);
}

// Waits for another fiber to provide or take something.
constexpr scheduler::WaitReasons kContention =
    set_of(WaitReason::mutex, WaitReason::shared_mutex_read, WaitReason::shared_mutex_write,
           WaitReason::semaphore, WaitReason::once, WaitReason::channel_send,
           WaitReason::channel_receive, WaitReason::select, WaitReason::pool_submit);
// All reasons to wait, except that of pool workers without a task.
constexpr scheduler::WaitReasons kBlocked =
    ~set_of(WaitReason::none, WaitReason::yield, WaitReason::pool_idle, WaitReason::stack);

Profile collect_waits(const std::stop_token& end, scheduler::WaitReasons reasons) {
  Profile profile;
  profile.counts = "contentions";
  profile.times = "delay";
  profile.period = 1ns;
  const auto see = [&profile](const WaitSample& wait) {
    ProfileStack stack = make_stack(wait.name.data(), wait.type, wait.calls);
    stack.reason = to_string(wait.reason);
    const auto time = static_cast<std::int64_t>(wait.weight) * wait.nanoseconds;
    profile.add(std::move(stack), {wait.weight, time});
  };
  WaitRecording recording;
  std::this_thread::sleep_for(kRound);
  recording.begin(reasons);
  while (!end.stop_requested()) {
    std::this_thread::sleep_for(kRound);
    recording.drain(see);
  }
  recording.finish(see);
  profile.lost = WaitRecording::lost();
  return profile;
}

// Runs a thread that collects until finish() or the destructor ends the collection.
class Collection {
 public:
  using Collect = Profile (*)(const std::stop_token&);

  explicit Collection(Collect collect) : thread_(collect) {}

  // Blocks for some milliseconds. Throws the exception of the thread.
  Profile finish() {
    thread_.request_stop();
    Profile profile = thread_.result();
    profile.begin = std::chrono::nanoseconds(begin_.time_since_epoch()).count();
    profile.duration = std::chrono::steady_clock::now() - since_;
    return profile;
  }

 private:
  const std::chrono::system_clock::time_point begin_ = std::chrono::system_clock::now();
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  OtherThread<Profile> thread_;
};

Result<std::string> record(std::chrono::nanoseconds duration, const Wait& wait,
                           Collection::Collect collect, Write write) {
  Collection collection(collect);
  const bool is_whole = wait(Deadline::after(duration));
  // Runs on a helper thread, because looking up names is slow and needs a large stack.
  std::string text = blocking([&] {
    const Profile profile = collection.finish();
    return is_whole ? write(profile) : std::string();
  });
  return {std::move(text), is_whole ? std::error_code() : early_end()};
}

Write writer_of(profile::Format format) noexcept {
  return format == profile::Format::pprof ? &as_pprof : &as_folded;
}

bool has_samples() noexcept { return !fibers::kSanitized && !detail::is_simulated(); }

detail::Atomic<int> processor_is_taken{0};
detail::Atomic<int> waits_are_taken{0};

Result<std::string> record_waits(const profile::Options& options, const Wait& wait,
                                 Collection::Collect collect) {
  if (!has_samples()) return {{}, system_code(EOPNOTSUPP)};
  const RecordingTurn turn(waits_are_taken);
  if (!turn.is_mine()) return {{}, system_code(EINPROGRESS)};
  return record(options.duration, wait, collect, writer_of(options.format));
}

}  // namespace

bool sleep_until_end(Deadline end) { return this_fiber::sleep_until(end, Until::ambient()); }

Result<std::string> record_processor(const profile::Options& options, const Wait& wait) {
  return record_processor(options.duration, wait, writer_of(options.format));
}

Result<std::string> record_processor(std::chrono::nanoseconds duration, const Wait& wait,
                                     Write write) {
  if (!has_samples()) return {{}, system_code(EOPNOTSUPP)};
  const RecordingTurn turn(processor_is_taken);
  if (!turn.is_mine()) return {{}, system_code(EINPROGRESS)};
  if (!ProcessorSampler::prepare()) return {{}, system_code(EBUSY)};
  return record(duration, wait, &collect_samples, write);
}

Result<std::string> record_contention(const profile::Options& options, const Wait& wait) {
  return record_waits(options, wait,
                      [](const std::stop_token& end) { return collect_waits(end, kContention); });
}

Result<std::string> record_blocked(const profile::Options& options, const Wait& wait) {
  return record_waits(options, wait,
                      [](const std::stop_token& end) { return collect_waits(end, kBlocked); });
}

}  // namespace weft::runtime

namespace weft::profile {

Result<std::string> processor(const Options& options) {
  return runtime::record_processor(options, &runtime::sleep_until_end);
}

Result<std::string> contention(const Options& options) {
  return runtime::record_contention(options, &runtime::sleep_until_end);
}

Result<std::string> blocked(const Options& options) {
  return runtime::record_blocked(options, &runtime::sleep_until_end);
}

}  // namespace weft::profile
