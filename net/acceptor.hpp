// The accept loops of a server.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <system_error>
#include <vector>
#include <weft/net/serve.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>

#include "net/accept.hpp"

namespace weft::net {

// Accepts connections for a server, and retries after temporary errors. A server derives from this
// class to handle the connections. Several fibers call its functions at once.
class Acceptor {
 public:
  explicit Acceptor(AtLimit at_limit) : at_limit_(at_limit) {}
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Starts a fiber for each listener, which accepts until stop(). The fiber then accepts the
  // clients that have already connected, and closes its listener. Call it once. Throws what go()
  // throws; some fibers may then be accepting already.
  void start(std::span<const AnyListener> listeners);
  // Any thread may call it. The copy keeps the callables alive even if one of them ends the server.
  void stop() noexcept { (void)std::stop_source(stop_).request_stop(); }
  [[nodiscard]] bool is_stopping() const noexcept { return stop_.stop_requested(); }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  // From now on, connected clients that have no place yet are refused.
  void refuse_rest() noexcept { (void)late_.request_stop(); }
  [[nodiscard]] bool refuses_rest() const noexcept { return late_.stop_requested(); }
  // Waits until no fiber accepts any more. Returns false if `until` ended the wait.
  [[nodiscard]] bool wait_until(const Until& until) noexcept {
    return accepting_.wait_until(until);
  }
  // Returns the error of the first listener that an error ended, in the order of start(), or no
  // error after a close. Valid only once no fiber accepts.
  [[nodiscard]] std::error_code error() const noexcept;

 protected:
  ~Acceptor() = default;

 private:
  // Takes a place for one more connection; with AtLimit::wait it waits for a place. Returns false
  // if there is none, or `until` ended the wait.
  [[nodiscard]] virtual bool take_place(const Until& until) noexcept = 0;
  virtual void give_place() noexcept = 0;
  // Handles a new connection that has a place.
  virtual void begin(Connection::AnyStream&& stream) noexcept = 0;
  // Handles a new connection for which there is no place or no descriptor.
  virtual void turn_away(ByteStream&& stream) noexcept = 0;
  virtual void count_pause() noexcept = 0;

  [[nodiscard]] std::error_code accept_from(const AnyListener& listener) noexcept;
  [[nodiscard]] Result<Socket> next_connection(const AnyListener& listener, const Until& until);
  void begin_last(const AnyListener& listener) noexcept;
  void wait_out(const AnyListener& listener, std::error_code error, Pauses& pauses,
                ReserveDescriptor& reserve);
  void refuse_waiting(const AnyListener& listener, ReserveDescriptor& reserve);
  void turn_away(Socket&& socket) noexcept { turn_away(ByteStream(std::move(socket))); }

  const AtLimit at_limit_;
  std::stop_source stop_;
  std::stop_source late_;
  WaitGroup accepting_;
  std::vector<std::error_code> errors_;  // One for each listener.
};

}  // namespace weft::net
