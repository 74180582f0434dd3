// One request and its answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/http/request.hpp>

#include "libs/http/server/answer.hpp"
#include "libs/http/server/body_reader.hpp"
#include "libs/http/server/hang_up.hpp"
#include "libs/http/server/output.hpp"
#include "libs/http/wire/head_parser.hpp"

namespace weft::http {

class Connection;
class Input;

// The deadline of a request. It does not read the clock if there is no limit.
[[nodiscard]] inline Deadline limit_after(std::chrono::nanoseconds request) noexcept {
  return request == kNever ? Deadline::never() : Deadline::after(request);
}

// The inside of a Request and a Response. The handler's fiber uses it, then the connection's.
// Order
//   [made]  context() and set_limit() store what they have made (release) -> context() loads it
//           (acquire): it exists.
//   [read]  read_some() stores at the body's end (release) -> context() loads (acquire). The one
//           that takes lock_ second sees what the other has stored, and begins the watch.
//           Relaxed in the constructor: no other fiber has the exchange yet.
class Exchange {
 public:
  Exchange(Connection& connection, Input& input, Output& output, const Head& head) noexcept;

  // The request.
  [[nodiscard]] const Head& head() const noexcept { return head_; }
  [[nodiscard]] BodyReader& body() noexcept { return body_; }
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  [[nodiscard]] Context& context();
  // The context of the handler's calls, for a ContextNode: that of `exchange`, made at its first
  // use. If memory or a fiber for it is lacking, it is the context of all requests, or does not end
  // at a hang-up.
  [[nodiscard]] static const Context* ambient(void* exchange) noexcept;
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] const auto& parameters() const noexcept { return parameters_; }
  void add_parameter(std::string_view name, std::string_view value) {
    parameters_.emplace_back(name, value);
  }

  [[nodiscard]] Answer& answer() noexcept { return answer_; }
  [[nodiscard]] const Answer& answer() const noexcept { return answer_; }

  // Completes the answer after the handler has returned. Returns true if the connection stays open.
  // The head's texts are valid until body().give_back(), which must then follow.
  [[nodiscard]] bool finish();
  // The context's deadline: Limits::request, or another one for this request.
  [[nodiscard]] Deadline limit() const noexcept { return limit_; }
  // Replaces it by that time from now. A context that is in use keeps its own; from now on
  // context() is a child of it.
  void set_limit(std::chrono::nanoseconds request);
  // Returns whether the client has announced its last request, and all its bytes have been read: a
  // close then discards no answer.
  [[nodiscard]] bool was_the_last() const noexcept;

 private:
  void watch_for_hang_up();

  Connection& connection_;
  Input& input_;
  const Head& head_;
  BodyReader body_;
  Deadline limit_;  // The context's.
  std::vector<std::pair<std::string_view, std::string_view>> parameters_;
  // The fiber of the handler may use the context while another fiber reads the body.
  detail::SpinLock lock_;
  // Guarded by lock_ until it is made. Unchecked: later it does not change, and needs no lock.
  std::optional<Context> context_;
  std::forward_list<Context> narrower_;  // Children for set_limit(); the handler's fiber adds them.
  // Guarded by lock_ until the handler has returned. Unchecked: then no other fiber refers to it.
  std::optional<HangUpWatch> hang_up_;
  detail::Atomic<Context*> current_{nullptr};
  detail::Atomic<bool> is_read_{false};  // The body.
  Answer answer_;
};

}  // namespace weft::http
