#include "base/refusal.hpp"

namespace weft::base {

const char* limits_behind(std::error_code code) noexcept {
  if (code == std::errc::resource_unavailable_try_again) {
    return "ulimit -u (RLIMIT_NPROC), pids.max of the cgroup, or kernel.threads-max";
  }
  if (code == std::errc::too_many_files_open) return "ulimit -n (RLIMIT_NOFILE)";
  if (code == std::errc::too_many_files_open_in_system) return "fs.file-max";
  if (code == std::errc::not_enough_memory) return "ulimit -v (RLIMIT_AS), or vm.max_map_count";
  if (code == std::errc::no_space_on_device) return "fs.epoll.max_user_watches";
  if (code == std::errc::operation_not_permitted) return "a filter of system calls (seccomp)";
  return "";
}

std::system_error refusal(std::error_code code, const std::string& what) {
  std::string text = "weft: " + what;
  const char* limits = limits_behind(code);
  if (*limits != '\0') text.append("; the limit may be ").append(limits);
  return {code, text};
}

}  // namespace weft::base
