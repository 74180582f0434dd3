// Selects a handler by method and path.
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <vector>
#include <weft/detail/shared_function.hpp>
#include <weft/detail/wrong_callable.hpp>
#include <weft/http/server.hpp>

namespace weft::http {

// Answers a request, or calls the wrapped handler `next`, which is valid until the call ends.
using Middleware = weft::detail::SharedFunction<void(Request&, Response&, const Handler& next)>;

// Works as a Handler that selects another Handler by method and path:
//
//   Router router;
//   router.use(log).get("/users/{id}", show_user).get("/files/{path...}", send_file);
//   Server server(std::move(router));
//
// `{name}` matches a non-empty segment of a path, and `{name...}` the rest of a path after a slash,
// even if empty. Among the routes of a method, a literal segment takes precedence over `{name}`,
// and `{name}` over `{name...}`, from left to right. Segments are compared in decoded form. The
// response is 404 for an unknown path, and 405 with an Allow header for an unknown method. A HEAD
// request uses the GET handler if there is no route for HEAD. The response to "OPTIONS *" is 204,
// with all methods in Allow. A handler's fiber is named after the route, such as "GET /users/{id}",
// or after the pattern for any(). In middleware, the fiber has its old name. Copies share routes.
// Context: any number of fibers once a server uses the router; calls park if handlers do. Before
// that, one caller at a time may add routes; adding does not park.
// Throws: std::bad_alloc; functions that add a route also throw whatever route() throws.
class Router {
 public:
  // Makes a router without routes. It answers every request except "OPTIONS *" with 404.
  Router();

  // Adds a route. `method` is any token, such as "QUERY", and is case-sensitive.
  // Throws: std::invalid_argument for a method that is not a token, an invalid pattern (such as one
  // without a leading slash), an empty handler, or a second handler for the route.
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
  // Adds a route for methods with no other route for `pattern`. A GET route also serves HEAD.
  Router& any(std::string_view pattern, Handler handler);
  // Wraps all routes and the router's own responses; the first middleware added is outermost.
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

  // Answers a request with the handler of its route; the server calls this function.
  // Throws: what the handler and the middleware throw.
  void operator()(Request& request, Response& response) const;

 private:
  struct Node;
  struct Routes;
  void add(std::string_view method, std::string_view pattern, Handler handler);

  std::shared_ptr<Routes> routes_;
};

// Returns a handler that passes `limits` to Request::set_limits() and calls `handler`. If a request
// announces a body above the limit, the response is 413, and `handler` is not called. `limits`
// replaces limits that middleware has set; if limits.request is empty, that earlier limit remains.
// Context: plain value.
// Throws: std::bad_alloc; std::invalid_argument for an empty handler or a time limit of 0 or less.
[[nodiscard]] Handler limited(const RequestLimits& limits, Handler handler);

}  // namespace weft::http
