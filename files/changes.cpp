#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <weft/descriptor.hpp>
#include <weft/file_changes.hpp>

#include "files/regular.hpp"
#include "io/kernel.hpp"
#include "io/poller.hpp"

namespace weft::files {

using io::result_of;

namespace {

constexpr std::uint32_t kCreated = IN_CREATE | IN_MOVED_TO;
constexpr std::uint32_t kRemoved = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t kWatched = kCreated | kRemoved | IN_MODIFY | IN_CLOSE_WRITE;

ChangeKind kind_of(std::uint32_t mask) noexcept {
  if ((mask & IN_Q_OVERFLOW) != 0) return ChangeKind::lost;
  if ((mask & kCreated) != 0) return ChangeKind::created;
  if ((mask & kRemoved) != 0) return ChangeKind::removed;
  return (mask & IN_MODIFY) != 0 ? ChangeKind::modified : ChangeKind::closed;
}

auto find_number(std::vector<std::pair<int, std::string>>& paths, int number) noexcept {
  return std::find_if(paths.begin(), paths.end(),
                      [number](const auto& each) { return each.first == number; });
}

}  // namespace

Result<ChangeWatch> ChangeWatch::open() {
  if (io::simulated_files() != nullptr) {
    return {.error = std::make_error_code(std::errc::operation_not_supported)};
  }
  const CallResult opened = result_of([] { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); });
  if (opened.error != 0) return {.error = opened.code()};
  Descriptor own(static_cast<int>(opened.value));
  auto [watch, error] = io::Watch::adopt(own.get());
  if (error) return {.error = error};
  (void)own.release();
  return {.value = ChangeWatch(std::move(watch))};
}

Result<void> ChangeWatch::add(std::string path) {
  const io::IoUse use(watch_.handle());
  if (!use) return Errc::closed;
  if (const auto malformed = check_path(path)) return malformed;
  const CallResult added =
      result_of([&] { return ::inotify_add_watch(use->descriptor(), path.c_str(), kWatched); });
  if (added.error != 0) return added.code();
  const auto number = static_cast<int>(added.value);
  const auto found = find_number(paths_, number);
  if (found == paths_.end()) {
    paths_.emplace_back(number, std::move(path));
  } else {
    found->second = std::move(path);
  }
  return {};
}

Result<void> ChangeWatch::remove(const std::string& path) {
  const io::IoUse use(watch_.handle());
  if (!use) return Errc::closed;
  // Searches backwards, because an earlier watch of the path stays in the list until its
  // IN_IGNORED.
  const auto found = std::find_if(paths_.rbegin(), paths_.rend(),
                                  [&](const auto& each) { return each.second == path; });
  if (found == paths_.rend()) return std::make_error_code(std::errc::invalid_argument);
  // The system confirms the removal by IN_IGNORED. Until then the path is needed for earlier
  // changes.
  return result_of([&] { return ::inotify_rm_watch(use->descriptor(), found->first); }).code();
}

std::error_code ChangeWatch::fill(const Until& until) {
  constexpr std::size_t kRoom = 4096;  // Has room for at least one event with the longest name.
  events_.resize(kRoom);
  at_ = 0;
  const auto [count, error] =
      io::read_some(watch_, std::as_writable_bytes(std::span(events_)), until);
  events_.resize(error ? 0 : count);
  return error;
}

Result<Change> ChangeWatch::next(const Until& until) {
  for (;;) {
    if (at_ == events_.size()) {
      if (const auto error = fill(until)) return {.error = error};
    }
    inotify_event event{};
    std::memcpy(&event, events_.data() + at_, sizeof event);
    const char* const name = events_.data() + at_ + sizeof event;  // It ends with a zero byte.
    at_ += sizeof event + event.len;
    const auto found = find_number(paths_, event.wd);
    Change change{.path = {}, .kind = kind_of(event.mask)};
    if (found != paths_.end()) {
      change.path = found->second;
      if (event.len > 0) change.path.append("/").append(name);
      if ((event.mask & IN_IGNORED) != 0) paths_.erase(found);
    }
    const bool is_shown = (event.mask & (kWatched | IN_Q_OVERFLOW)) != 0;
    if (is_shown && (found != paths_.end() || change.kind == ChangeKind::lost)) {
      return {.value = std::move(change)};
    }
  }
}

}  // namespace weft::files
