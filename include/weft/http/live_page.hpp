// The live page on a server of weft-http.
#pragma once

#include <string>
#include <utility>
#include <weft/http/router.hpp>
#include <weft/live_page.hpp>

namespace weft::http {

// At `prefix`, "/debug/weft" for example, which must not end in a slash: what <weft/live_page.hpp>
// shows at "/" is at prefix + "/" then. Throws as Router::route(). It is called by the caller that
// adds the routes; neither parks nor synchronizes.
inline void mount_live_page(Router& router, const std::string& prefix,
                            live::Readers readers = live::Readers::this_machine) {
  router.get(prefix + "/{page...}", [readers](Request& request, Response& response) {
    const auto [peer, error] = request.peer_address();
    live::Answer answer{403, "text/plain", "for this machine only\n"};
    if (!error && live::may_read(readers, peer, request.host())) {
      answer = live::answer("/" + request.parameter("page"));
    }
    response.set_status(answer.status);
    response.add_header("Content-Type", answer.content_type);
    response.add_header("Cache-Control", "no-store");
    (void)response.send(answer.body);
  });
}

}  // namespace weft::http
