#include "libs/http/server/hang_up.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <weft/detail/guard.hpp>
#include <weft/detail/invariant.hpp>

#include "io/kernel.hpp"
#include "io/poller.hpp"

namespace weft::http {

using detail::acquire;
using detail::relaxed;
using detail::release;

namespace {

// Returns whether the peer has closed its sending side, even if unread bytes precede the end.
bool has_ended(int descriptor) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    pollfd unix_socket{descriptor, POLLRDHUP, 0};
    return ::poll(&unix_socket, 1, 0) > 0;
  }
  return info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_CLOSE;
}

// Not inlined, because a compiler could otherwise keep the address of errno across a switch.
[[gnu::noinline]] bool is_gone(int descriptor) noexcept {
  if (io::Kernel* kernel = io::simulated_kernel(descriptor)) [[unlikely]]
    return kernel->is_gone(descriptor);
  char byte = 0;
  const ssize_t count = ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count > 0) return has_ended(descriptor);
  return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace

bool has_hung_up(net::TcpStream& stream) noexcept {
  const io::IoUse use(stream.socket().handle());
  if (!use) return true;
  return use->read().worth_trying() && is_gone(use->descriptor());
}

HangUpWatch::HangUpWatch(net::TcpStream& stream, Context& context)
    : IoWatch{&HangUpWatch::note_edge}, stream_(stream), context_(context) {
  fiber_ = detail::spawn_parked(detail::Task([this] { look(); }), detail::WaitReason::readable);
  enter();
}

HangUpWatch::~HangUpWatch() {
  lock_.lock();
  WEFT_INVARIANT(!over_, "HangUpWatch I1: over_ is set once, and stays set");
  over_ = true;
  lock_.unlock();
  // handle->read() stays valid while the stream has its handle, even if the handle is closed.
  io::IoHandle* const handle = stream_.socket().handle();
  if (handle != nullptr) handle->read().remove_watch(*this);
  if (!told_.load(acquire)) detail::wake(fiber_);  // [told]
  ended_.wait();
  // An edge that this watch has received may mean new bytes, so the next read must try the socket.
  if (handle != nullptr) handle->read().set_drained(false);
}

// Registers the watch. Called only while fiber_ is waiting.
void HangUpWatch::enter() noexcept {
  const io::IoUse use(stream_.socket().handle());
  const detail::Waker fiber = fiber_;
  // enter() holds the lock until the watch is registered, so that the destructor finds it after
  // setting over_. add_watch() may call note_edge(), which is safe because note_edge() takes no
  // lock.
  const detail::Guard guard(lock_);
  const bool watches = use && !over_;
  told_.store(!watches, relaxed);  // Relaxed: lock_ or add_watch() publishes told_.
  if (watches) {
    use->read().add_watch(*this);
  } else {
    detail::wake(fiber);
  }
}

void HangUpWatch::publish(void* self) noexcept { static_cast<HangUpWatch*>(self)->enter(); }

detail::Waker HangUpWatch::note_edge(IoWatch& watch) noexcept {
  auto& self = static_cast<HangUpWatch&>(watch);
  WEFT_INVARIANT(!self.told_.load(relaxed), "HangUpWatch I2: told_ is false while the watch is in");
  self.told_.store(true, release);  // [told]
  return self.fiber_;
}

// The watch's fiber runs this function.
void HangUpWatch::look() noexcept {
  for (;;) {
    lock_.lock();
    const bool over = over_;
    lock_.unlock();
    if (over) break;
    bool gone = true;
    {
      const io::IoUse use(stream_.socket().handle());
      if (use) gone = is_gone(use->descriptor());
    }
    if (gone) {
      (void)context_.cancel();
      break;
    }
    fiber_ = detail::current();
    detail::park({&HangUpWatch::publish, this}, detail::WaitReason::readable);
  }
  ended_.set();
}

}  // namespace weft::http
