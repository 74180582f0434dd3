// Selects a handler by the path.
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <vector>
#include <weft/detail/shared_function.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/http/server.hpp>

namespace weft::http {

// Answers a request, or calls `next`, the handler that it wraps, which is valid during the call.
using Middleware = weft::detail::SharedFunction<void(Request&, Response&, const Handler& next)>;

// A Handler that selects another Handler by method and path:
//
//   Router router;
//   router.use(log).get("/users/{id}", show_user).get("/files/{path...}", send_file);
//   Server server(std::move(router));
//
// `{name}` matches a non-empty part of a path, `{name...}` all the rest, which may be empty. Among
// routes with the method, literal parts precede `{name}`, part by part; parts are compared decoded.
// An unknown path is answered with 404, an unknown method with 405 and Allow. HEAD uses GET's
// handler if it has no route of its own. "OPTIONS *" is answered with 204 and with all methods in
// Allow. A running handler's fiber is named by the route, "GET /users/{id}", for dumps, the live
// page and traces; any()'s routes have only the pattern. While middleware runs, the fiber has
// another name. Copies share their routes.
// Context: any number of fibers once it serves; they park as handlers do. Before that, one caller
// at a time adds routes; this does not park.
// Throws: std::bad_alloc; calls that add a route also as route().
class Router {
 public:
  // Has no routes: it answers everything with 404.
  Router();

  // Adds a route. `method` is any token, such as "QUERY", in exact case.
  // Throws: std::invalid_argument for another method, for a pattern without a leading slash or with
  // a misplaced brace, for an empty handler, or if there is a handler already.
  Router& route(std::string_view method, std::string_view pattern, Handler handler);
  // Adds a route for GET.
  Router& get(std::string_view pattern, Handler handler) {
    return route("GET", pattern, std::move(handler));
  }
  // Adds a route for POST.
  Router& post(std::string_view pattern, Handler handler) {
    return route("POST", pattern, std::move(handler));
  }
  // Adds a route for PUT.
  Router& put(std::string_view pattern, Handler handler) {
    return route("PUT", pattern, std::move(handler));
  }
  // Adds a route for DELETE.
  Router& del(std::string_view pattern, Handler handler) {
    return route("DELETE", pattern, std::move(handler));
  }
  // Adds a route for each method without a route() of its own with this pattern.
  Router& any(std::string_view pattern, Handler handler);
  // Runs `middleware` around all routes, the first outermost, and around 404 and 405.
  Router& use(Middleware middleware);

  // These overloads exist only for their error messages.
#define WEFT_FOR_A_ROUTE "weft::http::Router: the handler must take a Request& and a Response&"
  template <class H>
  requires(!std::convertible_to<H, Handler>) Router& get(std::string_view, H) {
    static_assert(weft::detail::kFits<H>, WEFT_FOR_A_ROUTE);
    return *this;
  }
  template <class H>
  requires(!std::convertible_to<H, Handler>) Router& post(std::string_view, H) {
    static_assert(weft::detail::kFits<H>, WEFT_FOR_A_ROUTE);
    return *this;
  }
  template <class H>
  requires(!std::convertible_to<H, Handler>) Router& put(std::string_view, H) {
    static_assert(weft::detail::kFits<H>, WEFT_FOR_A_ROUTE);
    return *this;
  }
  template <class H>
  requires(!std::convertible_to<H, Handler>) Router& del(std::string_view, H) {
    static_assert(weft::detail::kFits<H>, WEFT_FOR_A_ROUTE);
    return *this;
  }
  template <class H>
  requires(!std::convertible_to<H, Handler>) Router& any(std::string_view, H) {
    static_assert(weft::detail::kFits<H>, WEFT_FOR_A_ROUTE);
    return *this;
  }
  template <class H>
  requires(!std::convertible_to<H, Handler>) Router& route(std::string_view, std::string_view, H) {
    static_assert(weft::detail::kFits<H>, WEFT_FOR_A_ROUTE);
    return *this;
  }
  template <class H>
  requires(!std::convertible_to<H, Middleware>) Router& use(H) {
    static_assert(weft::detail::kFits<H>,
                  WEFT_FOR_A_ROUTE ", and middleware also a const Handler&");
    return *this;
  }
#undef WEFT_FOR_A_ROUTE

  // Answers a request by its handler; the server calls it.
  // Throws: as the handler.
  void operator()(Request& request, Response& response) const;

 private:
  struct Node;
  struct Routes;
  void add(std::string_view method, std::string_view pattern, Handler handler);

  std::shared_ptr<Routes> routes_;
};

// Returns a handler that serves `handler` with these limits: Request::set_limits(). A request that
// announces a larger body is answered with 413, without calling `handler`. A route's limits replace
// the limits that middleware has set.
// Context: plain value.
// Throws: std::bad_alloc; std::invalid_argument for an empty handler, and for a time of 0 or less.
[[nodiscard]] Handler limited(const RequestLimits& limits, Handler handler);

}  // namespace weft::http
