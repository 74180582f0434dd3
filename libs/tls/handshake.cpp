// Runs handshakes on stacks that are large enough.
#include <memory>
#include <string>
#include <utility>
#include <weft/go.hpp>
#include <weft/tls/error.hpp>
#include <weft/tls/stream.hpp>

#include "libs/tls/handshake_limit.hpp"
#include "libs/tls/stream_state.hpp"

namespace weft::tls {

namespace {

// A handshake verifies chains of certificates with big numbers on the stack, which takes some tens
// of KiB; a default stack might not suffice.
constexpr std::size_t kHandshakeStack = 256 * 1024;

std::error_code shake_hands(StreamState& state, const Until& until) {
  if (const auto error = state.prepare()) return error;
  auto handshake = weft::spawn({.stack_size = kHandshakeStack, .name = "tls handshake"},
                               [&] { return state.handshake(until); });
  return handshake.join();
}

// Runs a server's handshake within its limit.
std::error_code shake_hands_in_turn(StreamState& state, const Until& until) {
  const HandshakeTurn turn(state.context().handshakes(), until);
  if (const auto error = state.prepare()) return error;
  // A handshake that has waited long for a processor may have been dropped in favour of a newer
  // handshake.
  auto handshake = weft::spawn({.stack_size = kHandshakeStack, .name = "tls handshake"}, [&] {
    return turn.was_dropped() ? make_error_code(Errc::too_many_handshakes)
                              : state.handshake(turn.until());
  });
  const std::error_code error = handshake.join();
  return error && turn.was_dropped() ? make_error_code(Errc::too_many_handshakes) : error;
}

}  // namespace

net::Result<Stream> Stream::accept(net::TcpStream stream, const Context& context,
                                   const Until& until) {
  return begin(std::make_unique<StreamState>(std::move(stream), context.state(), std::string()),
               until);
}

net::Result<Stream> Stream::connect(net::TcpStream stream, const Context& context,
                                    const std::string& server_name, const Until& until) {
  return begin(std::make_unique<StreamState>(std::move(stream), context.state(), server_name),
               until);
}

net::Result<Stream> Stream::accept_on(net::TcpStream& stream, const Context& context,
                                      const Until& until) {
  return begin(std::make_unique<StreamState>(stream, context.state(), std::string()), until);
}

net::Result<Stream> Stream::connect_on(net::TcpStream& stream, const Context& context,
                                       const std::string& server_name, const Until& until) {
  return begin(std::make_unique<StreamState>(stream, context.state(), server_name), until);
}

net::Result<Stream> Stream::begin(std::unique_ptr<StreamState> state, const Until& until) {
  const std::error_code error = state->context().is_server() ? shake_hands_in_turn(*state, until)
                                                             : shake_hands(*state, until);
  if (error) return {.error = error};
  return {.value = Stream(std::move(state))};
}

}  // namespace weft::tls
