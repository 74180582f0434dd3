// Detects that a client disconnects while its request is being answered.
#pragma once

#include <weft/context.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/detail/waist.hpp>
#include <weft/event.hpp>
#include <weft/net/tcp_stream.hpp>

namespace weft::http {

// Returns whether the peer has already closed its sending side, as a client may do right after its
// request. First clears the recorded edges, so that a later close by the peer is reported as a new
// edge. The caller must be the only reader of the stream. Usually makes no system call.
[[nodiscard]] bool has_hung_up(net::TcpStream& stream) noexcept;

// Watches a stream that no fiber reads. Until the first edge, the watch's fiber has no stack. Each
// edge wakes the fiber, which then checks the stream, and cancels the context if the stream has
// ended. Unread bytes, such as the next request or TLS's last message, can hide the end of the
// stream. In this case, the fiber reads the state of the TCP connection from the kernel, or polls a
// Unix socket.
// Invariants
//   I1  Once a thread has set over_ under the lock, the watch is not registered again.
//   I2  told_ is false only while the watch is registered and fiber_ is waiting for it.
class HangUpWatch : private detail::IoWatch {
 public:
  // No fiber may read from the stream while this object exists. Requires that has_hung_up() has
  // returned false. Throws the same errors as weft::go().
  HangUpWatch(net::TcpStream& stream, Context& context);
  // Waits until the watch's fiber has ended.
  ~HangUpWatch();
  HangUpWatch(const HangUpWatch&) = delete;
  HangUpWatch& operator=(const HangUpWatch&) = delete;

 private:
  static detail::Waker note_edge(IoWatch& watch) noexcept;
  static void publish(void* self) noexcept;
  void enter() noexcept;
  void look() noexcept;

  net::TcpStream& stream_;
  Context& context_;
  detail::Waker fiber_;
  detail::SpinLock lock_;
  bool over_ WEFT_GUARDED_BY(lock_) = false;
  // Order
  //   [told]  note_edge() stores true (release) -> ~HangUpWatch() loads it (acquire): the
  //           destructor then does not wake the fiber, because the caller of note_edge() does.
  detail::Atomic<bool> told_{false};
  Event ended_;
};

}  // namespace weft::http
