// Combines one request and its response.
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

class ServerConnection;
class Input;

// Returns the current time plus `request`, or Deadline::never() if `request` is kNever.
[[nodiscard]] inline Deadline limit_after(std::chrono::nanoseconds request) noexcept {
  return request == kNever ? Deadline::never() : Deadline::after(request);
}

// Implements a Request and a Response. The handler's fiber uses the Exchange first, and the
// connection's fiber afterwards.
// Order
//   [made]  context() and set_limit() store current_ (release) -> context(), ambient(), set_limit()
//           and finish() load it (acquire): they then see the complete new context.
//   [read]  When the body ends, read_some() stores is_read_ (release) -> context() loads it
//           (acquire): context() sees true if it takes lock_ after read_some(). If context() takes
//           lock_ first, read_some() sees the context. The function that first sees both the
//           context and the end of the body begins the watch. Relaxed in the constructor: no other
//           fiber uses the exchange yet.
class Exchange {
 public:
  Exchange(ServerConnection& connection, Input& input, Output& output, const Head& head) noexcept;

  // The following functions access the request.
  [[nodiscard]] const Head& head() const noexcept { return head_; }
  [[nodiscard]] BodyReader& body() noexcept { return body_; }
  net::Result<std::size_t> read_some(std::span<std::byte> buffer);
  [[nodiscard]] Context& context();
  // ContextNode calls this function for the handler's context. The first call makes the context. If
  // that fails, returns the server's context, which all requests share. If the connection cannot be
  // watched, the context does not end when the client disconnects.
  [[nodiscard]] static const Context* ambient(void* exchange) noexcept;
  [[nodiscard]] ServerConnection& connection() noexcept { return connection_; }
  [[nodiscard]] const auto& parameters() const noexcept { return parameters_; }
  void add_parameter(std::string_view name, std::string_view value) {
    parameters_.emplace_back(name, value);
  }

  [[nodiscard]] Answer& answer() noexcept { return answer_; }
  [[nodiscard]] const Answer& answer() const noexcept { return answer_; }

  // Completes the handler's response. Returns true if the connection stays open. The caller must
  // then call body().give_back(), which may invalidate the head's strings.
  [[nodiscard]] bool finish();
  // Returns the context's deadline, which Limits::request or set_limit() has set.
  [[nodiscard]] Deadline limit() const noexcept { return limit_; }
  // Sets the deadline to the current time plus `request`. A context that is already in use keeps
  // its deadline; later calls to context() return a child of that context.
  void set_limit(std::chrono::nanoseconds request);
  // Returns true if this is the client's last request and the server has read all bytes, so that
  // closing the connection cannot discard the response.
  [[nodiscard]] bool was_the_last() const noexcept;

 private:
  void watch_for_hang_up();

  ServerConnection& connection_;
  Input& input_;
  const Head& head_;
  BodyReader body_;
  Deadline limit_;  // The context's deadline.
  std::vector<std::pair<std::string_view, std::string_view>> parameters_;
  // Guards the context, which the handler's fiber may use while another fiber reads the body.
  detail::SpinLock lock_;
  // lock_ guards the construction of context_. Not annotated, because readers take no lock, because
  // context_ never changes after its construction.
  std::optional<Context> context_;
  std::forward_list<Context> narrower_;  // Contexts that set_limit() made in the handler's fiber.
  // lock_ guards the watch until the handler has returned. Not annotated, because no annotation can
  // express that afterwards the connection's fiber uses the watch without the lock.
  std::optional<HangUpWatch> hang_up_;
  detail::Atomic<Context*> current_{nullptr};
  detail::Atomic<bool> is_read_{false};  // True once the body has been read.
  Answer answer_;
};

}  // namespace weft::http
