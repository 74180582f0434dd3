// Serves the live page on a weft-http server.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/http/router.hpp>
#include <weft/http/server.hpp>
#include <weft/live_page.hpp>
#include <weft/mutex.hpp>
#include <weft/net/tcp_listener.hpp>

namespace weft::http {

// Mounts the page of <weft/live_page.hpp> at `prefix`, such as "/debug/weft", which must not end in
// a slash. The page itself is at prefix + "/". Requests that only read the current state are served
// one at a time. A recording ends early if its client disconnects.
// Context: the caller that adds routes to `router`; does not park.
// Throws: whatever Router::route() throws.
inline void mount_live_page(Router& router, const std::string& prefix,
                            live::Readers readers = live::Readers::this_machine) {
  const auto one_reading = std::make_shared<Mutex>();
  const auto answer = [readers, one_reading](Request& request) -> live::Answer {
    const auto [peer, error] = request.peer_address();
    // A client on a Unix socket has no address, so it gets data only if `readers` is everybody.
    if (readers != live::Readers::everybody &&
        (error || !live::may_read(readers, peer, request.host()))) {
      return {403, "text/plain", "for this machine only\n"};
    }
    std::string target = "/" + request.parameter("page");
    target.append("?").append(request.query());
    if (!live::records(target)) {
      const detail::Guard guard(*one_reading);
      return live::answer(target);
    }
    return live::answer(target);
  };
  router.get(prefix + "/{page...}", [answer](Request& request, Response& response) {
    const live::Answer page = answer(request);
    response.set_status(page.status);
    response.add_header("Content-Type", page.content_type);
    response.add_header("Cache-Control", "no-store");
    (void)response.send(page.body);
  });
}

struct LivePageOptions {
  live::Readers readers = live::Readers::this_machine;
  std::stop_token stop = {};
};
// Serves only the live page, at "/":
//
//   auto listening = net::TcpListener::listen(net::Address::loopback_v4(live::kPort));
//   go([&] { (void)http::serve_live_page(listening.value); });
//
// Context: fibers and plain threads; parks until the listener is closed or fails, or until a stop
// is requested through options.stop and a grace period of at most 1 s is over.
// Errors, Throws: the same as for Server::serve() and the constructor of Server.
inline net::Result<void> serve_live_page(net::TcpListener& listener,
                                         const LivePageOptions& options = {}) {
  Router router;
  mount_live_page(router, {}, options.readers);
  ServerOptions serving{.max_connections = 64};
  serving.grace = std::chrono::seconds(1);
  serving.stop = options.stop;
  serving.name = "live page";
  return Server(std::move(router), std::move(serving)).serve(listener);
}

}  // namespace weft::http
