#include "libs/posix/samples.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <weft/detail/never_destroyed.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/stall_listener.hpp>

#include "libs/posix/blocked_calls.hpp"
#include "libs/posix/fiber_state.hpp"

namespace weft::posix {

namespace {

// Return addresses, innermost first, null after the last known one. The innermost addresses belong
// to the C library.
using Frames = std::array<const void*, 12>;

struct Sample {
  Frames frames{};
  std::uint64_t count = 0;
  std::int64_t total = 0;    // Nanoseconds.
  std::int64_t longest = 0;  // Nanoseconds.
};
// Only readers look names up: a lookup takes the loader's lock, which the stuck fiber may hold for
// long. When all samples are in use, the last sample collects all further calls.
struct Table {
  detail::SpinLock lock;
  std::array<Sample, 128> samples WEFT_GUARDED_BY(lock){};
  std::size_t used WEFT_GUARDED_BY(lock) = 0;
};
constinit Table table;

std::size_t index_of(const Frames& frames) noexcept WEFT_REQUIRES(table.lock) {
  for (std::size_t i = 0; i < table.used; ++i) {
    if (table.samples[i].frames == frames) return i;
  }
  if (table.used == table.samples.size()) {
    table.samples.back().frames = {};
    return table.used - 1;
  }
  table.samples[table.used].frames = frames;
  return table.used++;
}

class Listener final : public detail::StallListener {
 public:
  bool is_of_interest(const fibers::Fiber* fiber) const noexcept override {
    return is_sampled(fiber);
  }
  // The returned number combines the sample's index and how long the call has lasted so far: end()
  // needs both to update the longest time.
  std::uint64_t begin(std::span<const void* const> calls,
                      std::chrono::nanoseconds lasted) const noexcept override {
    Frames frames{};
    std::copy_n(calls.begin(), std::min(calls.size(), frames.size()), frames.begin());
    const detail::SpinGuard guard(table.lock);
    const std::size_t index = index_of(frames);
    Sample& sample = table.samples[index];
    ++sample.count;
    sample.total += lasted.count();
    sample.longest = std::max(sample.longest, lasted.count());
    return static_cast<std::uint64_t>(lasted.count()) * table.samples.size() + index + 1;
  }
  void end(std::uint64_t number, std::chrono::nanoseconds more) const noexcept override {
    const detail::SpinGuard guard(table.lock);
    const auto before = static_cast<std::int64_t>((number - 1) / table.samples.size());
    Sample& sample = table.samples[(number - 1) % table.samples.size()];
    sample.total += more.count();
    sample.longest = std::max(sample.longest, before + more.count());
  }
};

const void* object_of(const void* address) noexcept {
  Dl_info info{};
  return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Functions of stdio have a second name with a prefix.
std::string name_of(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_sname == nullptr) return {};
  std::string_view name(info.dli_sname);
  if (name.starts_with("_IO_")) name.remove_prefix(4);
  return std::string(name);
}

// Describes a sample by the entered function of the C library and its caller. A caller with the
// same name is an interceptor, which this function skips.
BlockedCalls described(const Sample& sample) {
  BlockedCalls row{"unknown",
                   std::string(kNotIntercepted),
                   "unknown",
                   sample.count,
                   std::chrono::nanoseconds(sample.total),
                   std::chrono::nanoseconds(sample.longest)};
  if (sample.frames[0] == nullptr) return row;
  const void* const c_library = object_of(::dlsym(RTLD_DEFAULT, "getppid"));
  const auto* caller = std::ranges::find_if(
      sample.frames, [c_library](const void* frame) { return object_of(frame) != c_library; });
  row.call = "system call";
  if (caller != sample.frames.begin()) {
    if (const std::string name = name_of(*(caller - 1)); !name.empty()) row.call = name;
    while (caller != sample.frames.end() && *caller != nullptr && name_of(*caller) == row.call)
      ++caller;
  }
  if (row.call.starts_with("pthread_mutex") || row.call.starts_with("pthread_rwlock"))
    row.reason = "another caller has the lock";
  if (caller != sample.frames.end()) row.from = place_of(*caller);
  return row;
}

constinit const detail::NeverDestroyed<Listener> listener;  // Monitors may run until the end.

}  // namespace

void listen_to_monitors() noexcept { detail::listen_to_stalls(listener.get()); }

void add_sample(std::span<const void* const> calls, std::chrono::nanoseconds took) noexcept {
  Listener().end(Listener().begin(calls, took), std::chrono::nanoseconds(0));
}

void add_samples(std::vector<BlockedCalls>& calls) {
  std::array<Sample, std::tuple_size_v<decltype(table.samples)>> samples{};
  std::size_t used = 0;
  {
    const detail::SpinGuard guard(table.lock);
    samples = table.samples;
    used = table.used;
  }
  const auto first = static_cast<std::ptrdiff_t>(calls.size());
  for (std::size_t i = 0; i < used; ++i) {
    BlockedCalls row = described(samples[i]);
    const auto same = std::find_if(calls.begin() + first, calls.end(), [&](const auto& other) {
      return other.call == row.call && other.reason == row.reason && other.from == row.from;
    });
    if (same == calls.end()) {
      calls.push_back(std::move(row));
      continue;
    }
    same->count += row.count;
    same->total += row.total;
    same->longest = std::max(same->longest, row.longest);
  }
}

void forget_samples() noexcept { std::construct_at(&table.lock); }

}  // namespace weft::posix
