// Makes descriptors usable as cases of a select().
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/io_watch.hpp>
#include <weft/detail/select_case.hpp>

namespace weft::io {
class IoHandle;
}

namespace weft::detail {

// A select case that is ready when a call on its descriptor would not have to wait. While the
// select is waiting, a watch on the descriptor reports edges to own_list_. attempt() queries the
// kernel for the descriptor's actual state, so the case works even if an earlier call has consumed
// the edge. A waiting select() consumes edges, so a later wait_for_edge() needs a new edge.
// Invariants
//   I1  While watching_ is true, the watch is registered for the direction or has been notified.
//       While watching_ is true, handle_ counts the case as a running call.
//   I2  A notified watch is registered again before the kernel is queried, so that an edge after
//       the query is noticed. After a case has consumed an edge, the next call on the descriptor
//       attempts its operation before it waits. Not asserted, because no field records the order.
class IoCase : public SelectCase, private IoWatch {
 public:
  enum class Direction : std::uint8_t { read, write };

 protected:
  IoCase(io::IoHandle* handle, Direction direction) noexcept
      : SelectCase(&own_lock_, &own_list_),
        IoWatch{&IoCase::note_edge},
        handle_(handle),
        direction_(direction) {}

 private:
  void prepare() noexcept override;
  void dismiss() noexcept override;
  bool attempt() noexcept override;
  bool is_ready() noexcept override WEFT_NOT_ANALYZED;  // The select holds own_lock_.
  Deadline due() noexcept override;
  // Returns false because an edge does not prove readiness; the select must query the kernel.
  bool conclude() noexcept override { return false; }
  [[nodiscard]] bool asks_kernel() const noexcept override { return true; }

  [[nodiscard]] bool take_note() noexcept;
  static Waker note_edge(IoWatch& watch) noexcept;

  io::IoHandle* const handle_;  // If null, the case is always ready.
  const Direction direction_;
  bool watching_ = false;
  bool told_ WEFT_GUARDED_BY(own_lock_) = false;
  SpinLock own_lock_;
  WaitList own_list_ WEFT_GUARDED_BY(own_lock_);
};

template <class Handler>
class ReadinessCase final : public IoCase {
 public:
  ReadinessCase(io::IoHandle* handle, Direction direction, Handler handler)
      : IoCase(handle, direction), handler_(std::move(handler)) {}

  void handle() override { handler_(); }

 private:
  Handler handler_;
};

}  // namespace weft::detail
