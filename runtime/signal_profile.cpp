#include "runtime/signal_profile.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include "base/thread.hpp"
#include "runtime/dump.hpp"
#include "runtime/recording.hpp"

namespace weft::runtime {

namespace {

// Returns an empty error code on success. The file is private, because the names of a program's
// functions are not for other users.
std::error_code write_profile(const std::string& path, std::string_view text) noexcept {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return {base::last_error(), std::system_category()};
  const std::error_code error = write_all(file, text);
  (void)::close(file);
  return error;
}

void record(std::chrono::nanoseconds duration, unsigned number) {
  const char* folder = std::getenv("WEFT_PROFILE_FOLDER");
  std::string path(folder == nullptr || *folder == '\0' ? "." : folder);
  path.append("/weft-profile-").append(std::to_string(::getpid())).append("-");
  path.append(std::to_string(number)).append(".folded");
  const auto [text, refusal] = record_processor(duration, &sleep_until_end, &as_folded);
  const std::error_code error = refusal ? refusal : write_profile(path, text);
  if (error) {
    write_to_stderr("weft: no profile in " + path + ": " + error.message() + "\n");
  } else {
    const auto milliseconds = duration / std::chrono::milliseconds(1);
    write_to_stderr("weft: a profile of " + std::to_string(milliseconds) + " ms is in " + path +
                    "; weft-symbolize adds the names of functions\n");
  }
}

}  // namespace

void SignalProfile::begin(std::chrono::nanoseconds duration) noexcept {
  if (is_recording_.load(detail::relaxed)) {
    write_to_stderr("weft: no second profile while one is being recorded\n");
    return;
  }
  end();
  try {
    context_.emplace();
    is_recording_.store(true, detail::relaxed);
    thread_ = std::thread([this, duration, number = ++count_] {
      base::set_thread_name("weft-profile");
      const ContextScope scope(*context_);
      try {
        record(duration, number);
      } catch (const std::exception& refusal) {
        write_to_stderr(std::string("weft: no profile: ").append(refusal.what()).append("\n"));
      }
      is_recording_.store(false, detail::relaxed);
    });
  } catch (const std::exception& refusal) {
    is_recording_.store(false, detail::relaxed);
    write_to_stderr("weft: no thread for a profile\n");
  }
}

void SignalProfile::end() noexcept {
  if (!thread_.joinable()) return;
  context_->cancel();
  thread_.join();
}

}  // namespace weft::runtime
