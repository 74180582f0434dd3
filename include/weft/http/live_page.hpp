// The live page on a server of weft-http.
#pragma once

#include <string>
#include <utility>
#include <weft/http/router.hpp>
#include <weft/live_page.hpp>

namespace weft::http {

// Mounts <weft/live_page.hpp> at `prefix`, such as "/debug/weft", which must not end in a slash.
// Its "/" is at prefix + "/".
// Context: the caller that adds the routes; does not park.
// Throws: as Router::route().
inline void mount_live_page(Router& router, const std::string& prefix,
                            live::Readers readers = live::Readers::this_machine) {
  router.get(prefix + "/{page...}", [readers](Request& request, Response& response) {
    const auto [peer, error] = request.peer_address();
    live::Answer answer{403, "text/plain", "for this machine only\n"};
    if (!error && live::may_read(readers, peer, request.host())) {
      std::string target = "/" + request.parameter("page");
      answer = live::answer(target.append("?").append(request.query()));
    }
    response.set_status(answer.status);
    response.add_header("Content-Type", answer.content_type);
    response.add_header("Cache-Control", "no-store");
    (void)response.send(answer.body);
  });
}

}  // namespace weft::http
