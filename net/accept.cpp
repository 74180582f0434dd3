#include "net/accept.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <weft/detail/atomic.hpp>

#include "base/refusal.hpp"
#include "net/transfer.hpp"

namespace weft::net {

namespace {

// Returns whether the connection ended, or its network failed, before it was accepted. The
// listener still works in this case, and the next connection may succeed.
bool concerns_one_connection(int error) noexcept {
  switch (error) {
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case ETIMEDOUT:
    case ENOSR:
    case ENETDOWN:
    case ENONET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

// Returns whether a rule forbids the call. A rule may stay in force, whereas a shortage passes.
bool is_forbidden(std::error_code error) noexcept {
  return error == std::errc::operation_not_permitted || error == std::errc::operation_not_supported;
}

}  // namespace

void report_refusals(std::error_code error) noexcept {
  // Relaxed: a superfluous line does no harm.
  static detail::Atomic<int> reported{0};
  if (reported.exchange(error.value(), detail::relaxed) == error.value()) return;
  const char* limits = base::limits_behind(error);
  char text[128];
  // std::error_code::message() would allocate memory.
  const char* reason = ::strerror_r(error.value(), text, sizeof text);
  (void)std::fprintf(
      stderr,
      "weft::net: accept() is refused repeatedly: %s%s%s; the server retries until it succeeds\n",
      reason, *limits == '\0' ? "" : "; the limit may be ", limits);
}

Result<Socket> accept_once(io::IoHandle& listener, const Until& until) noexcept {
  const auto attempt = [descriptor = listener.descriptor()]() noexcept {
    for (;;) {
      const CallResult result = accept_from(descriptor);
      if (!concerns_one_connection(result.error)) return result;
    }
  };
  io::IoDirection& direction = listener.read();
  (void)direction.worth_trying();  // Drops edges: the attempt will notice their causes.
  const auto [descriptor, error] =
      attempt_until(direction, detail::WaitReason::readable, until, true, attempt);
  if (error) return {.error = error};
  return adopt(listener.poller(), static_cast<int>(descriptor));
}

Result<Socket> accept_patiently(const Socket& listener, const Until& until) noexcept {
  const io::IoUse use(listener.handle());
  if (!use) return {.error = Errc::closed};
  Pauses pauses;
  for (unsigned forbidden = 0;;) {
    Result<Socket> result = accept_once(*use, until);
    if (!passes_by_itself(result.error) || until.is_over()) return result;
    forbidden = is_forbidden(result.error) ? forbidden + 1 : 0;
    if (forbidden > kRefusalsToReport) return result;
    if (pauses.count() == kRefusalsToReport) report_refusals(result.error);
    // The pause may end early because of the next connection, which does no harm.
    const Deadline pause = Deadline::after(pauses.next());
    const io::WaitOutcome outcome =
        use->read().wait(until.but_before(pause), detail::WaitReason::readable);
    if (outcome == io::WaitOutcome::closed) return {.error = Errc::closed};
  }
}

bool passes_by_itself(std::error_code error) noexcept {
  return error == std::errc::too_many_files_open ||
         error == std::errc::too_many_files_open_in_system || error == std::errc::no_buffer_space ||
         error == std::errc::not_enough_memory ||
         error == std::errc::no_space_on_device ||       // epoll has too many descriptors.
         error == std::errc::operation_not_permitted ||  // A firewall rule forbids it for now.
         error == std::errc::operation_not_supported;    // The network failed meanwhile.
}

bool ReserveDescriptor::take() noexcept {
  // The sockets of a simulation use no system descriptors, so no shortage can arise.
  if (descriptor_ >= 0 || detail::is_simulated()) return true;
  descriptor_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return descriptor_ >= 0 || (errno != EMFILE && errno != ENFILE);
}

bool ReserveDescriptor::give() noexcept {
  if (descriptor_ < 0) return false;
  close_descriptor(std::exchange(descriptor_, -1));
  return true;
}

}  // namespace weft::net
