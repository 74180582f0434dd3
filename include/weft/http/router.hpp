// Which handler for which path.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>
#include <weft/http/server.hpp>

namespace weft::http {

// Called around a handler: it may answer itself, or call `next`, which is valid during the call.
using Middleware = std::function<void(Request&, Response&, const Handler& next)>;

// A Handler that chooses another one by method and path:
//
//   Router router;
//   router.use(log).get("/users/{id}", show_user).get("/files/{path...}", send_file);
//   Server server(std::move(router));
//
// `{name}` stands for one part of a path that is not empty, `{name...}` for all that is left, which
// may be. Of the routes with the method, what stands there literally is preferred, part by part,
// then `{name}`; a part is compared as what its percent codes mean. A path without a route is
// answered with 404, a method without a route for it with 405 and Allow. HEAD finds GET's handler,
// if its route has none. "OPTIONS *" is answered with 204, and the methods of all routes in Allow.
// While a handler runs, its fiber is named by the route, "GET /users/{id}", so dumps, the live page
// and traces show it; any()'s routes have the pattern alone. Middleware runs outside of that.
// Copies share their routes. Routes are added before it serves; then it may be called from any
// number of fibers. Calls park, throw and synchronize where they say so. Routes are added by one
// caller at a time.
class Router {
 public:
  // Without routes: everything is answered with 404.
  Router();

  // `method` is any token, such as "QUERY"; its case matters. Throws std::invalid_argument for a
  // method that is no token, for a pattern that does not begin with a slash, or that has a brace
  // where none belongs, or if there is a handler already.
  Router& route(std::string_view method, std::string_view pattern, Handler handler);
  // route() for GET.
  Router& get(std::string_view pattern, Handler handler) {
    return route("GET", pattern, std::move(handler));
  }
  // route() for POST.
  Router& post(std::string_view pattern, Handler handler) {
    return route("POST", pattern, std::move(handler));
  }
  // route() for PUT.
  Router& put(std::string_view pattern, Handler handler) {
    return route("PUT", pattern, std::move(handler));
  }
  // route() for DELETE.
  Router& del(std::string_view pattern, Handler handler) {
    return route("DELETE", pattern, std::move(handler));
  }
  // For each method that has no route() of its own with this pattern.
  Router& any(std::string_view pattern, Handler handler);
  // Runs it around all routes, the first one outermost, and also around 404 and 405.
  Router& use(Middleware middleware);

  // Answers a request by its handler; the server calls it. Parks and throws as the handler does.
  void operator()(Request& request, Response& response) const;

 private:
  struct Node;
  struct Routes;
  void add(std::string_view method, std::string_view pattern, Handler handler);

  std::shared_ptr<Routes> routes_;
};

}  // namespace weft::http
