// A page on which a program shows what its fibers, workers and pools do.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <weft/net/address.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/tcp_listener.hpp>

// For a browser, for weft-top, for Prometheus and for curl. It reads, and changes nothing.
//
//   auto listening = TcpListener::listen(Address::loopback_v4(weft::live::kPort));
//   weft::go([&] { (void)weft::live::serve(listening.value); });
//
// On a server of weft-http: http::mount_live_page() in <weft/http/live_page.hpp>. The calls
// synchronize with nothing.
namespace weft::live {

// weft-top connects to this port by default.
inline constexpr std::uint16_t kPort = 6470;

struct Answer {
  int status = 200;
  std::string_view content_type;
  std::string body;
};

// The answer to a request for `path`, without a query:
//   /            the page, which asks for data.json every second
//   /data.json   metrics, and fibers grouped by where they were spawned and what they wait for
//   /metrics     for Prometheus
//   /fibers      the groups as text
//   /fibers.json each fiber: weft::dump::write_json()
//   /stacks      folded stacks of parked fibers: weft::dump::write_folded(), with what that costs
// else 404; and 503 with the reason where the system refuses a reading what it takes, a thread or a
// fork, say. Call it from fibers and plain threads. Blocks the thread for the time that a reading
// takes. Throws std::bad_alloc.
[[nodiscard]] Answer answer(std::string_view path);

// The clients that are answered. Others get 403: a page says much about a program.
enum class Readers {
  this_machine,  // By its loopback address; and names that others may point to it are refused.
  everybody,
};
// Returns whether a client is answered: `peer` is its address, and `host` what its request asked
// for, a Host header; empty if there was none. Of names only localhost is one of this machine. From
// anywhere; never parks. Throws std::bad_alloc.
[[nodiscard]] bool may_read(Readers readers, const net::Address& peer, std::string_view host);

struct Options {
  Readers readers = Readers::this_machine;
  std::stop_token stop = {};
};
// Answers on connections of `listener`, 64 at a time, one request each; what a request needs is
// read for one after the other. A client has 5 s to ask. A reading that the system refuses, or that
// finds no memory, is answered with 503 and the reason. From fibers and plain threads; parks until
// the listener is closed or options.stop asks for the end. Throws std::bad_alloc. Errors: as
// net::Server::run().
std::error_code serve(net::TcpListener& listener, const Options& options = {});

}  // namespace weft::live
