#include <weft/http/router.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/this_fiber.hpp>

#include "libs/http/server/route_index.hpp"
#include "libs/http/wire/head_rules.hpp"

namespace weft::http {

namespace {

// Returns the methods as a list such as "GET, HEAD".
std::string listed(const std::set<std::string_view>& methods) {
  std::string list;
  for (const std::string_view method : methods) {
    if (!list.empty()) list += ", ";
    list += method;
  }
  return list;
}

// Names the current fiber after the route, and restores the former name in the destructor.
class NamedByRoute {
 public:
  explicit NamedByRoute(std::string_view route) noexcept
      : size_(this_fiber::name().copy(former_.data(), former_.size())) {
    this_fiber::set_name(route);
  }
  ~NamedByRoute() { this_fiber::set_name({former_.data(), size_}); }
  NamedByRoute(const NamedByRoute&) = delete;
  NamedByRoute& operator=(const NamedByRoute&) = delete;

 private:
  std::array<char, 32> former_;  // Only its first size_ characters are initialized.
  std::size_t size_;
};

}  // namespace

// A node in the tree of all patterns; its children are the possible next segments of a path.
struct Router::Node {
  std::map<std::string, Node, std::less<>> literal;
  std::unique_ptr<Node> any;   // {name}
  std::unique_ptr<Node> rest;  // {name...}
  // Holds a handler and its parameters' names; routes of one node may use different names.
  struct Route {
    Handler handler;
    std::vector<std::string> names;
    std::string title;  // Method and pattern; only the pattern if the route serves all methods.
    RouteIndex index;   // The result of index_of_route(title).
  };
  std::map<std::string, Route, std::less<>> methods;
  std::optional<Route> any_method;

  [[nodiscard]] bool has_routes() const noexcept { return !methods.empty() || any_method; }
  // Returns the route for the method; null if this node has none.
  [[nodiscard]] const Route* route_for(std::string_view method) const;

  // Adds the methods of this node to `to`; a route for GET also serves HEAD.
  void add_methods(std::set<std::string_view>& to) const;
  // Adds the methods of this node and of all nodes below it to `to`.
  void collect_methods(std::set<std::string_view>& to) const;

  using Values = std::vector<std::string_view>;
  // Calls `visit` with the nodes that have handlers for `path`, in order of preference, until a
  // call returns true. During each call, `values` contains the values of that node's parameters.
  template <class Visit>
  bool visit_matches(std::string_view path, Values& values, const Visit& visit) const;
};

struct Router::Routes {
  Node root;
  std::vector<Middleware> middlewares;

  void dispatch(Request& request, Response& response) const;
  void refuse(std::string_view path, Response& response) const;
  void run_from(std::size_t depth, Request& request, Response& response) const;
};

const Router::Node::Route* Router::Node::route_for(std::string_view method) const {
  auto found = methods.find(method);
  if (found == methods.end() && method == "HEAD") found = methods.find("GET");
  if (found != methods.end()) return &found->second;
  return any_method ? &*any_method : nullptr;
}

void Router::Node::add_methods(std::set<std::string_view>& to) const {
  for (const auto& [method, route] : methods) {
    to.insert(method);
    if (method == "GET") to.insert("HEAD");
  }
}

void Router::Node::collect_methods(std::set<std::string_view>& to) const {
  add_methods(to);
  for (const auto& [part, node] : literal) node.collect_methods(to);
  if (any != nullptr) any->collect_methods(to);
  if (rest != nullptr) rest->collect_methods(to);
}

template <class Visit>
bool Router::Node::visit_matches(std::string_view path, Values& values, const Visit& visit) const {
  // `path` is empty, or begins with the slash before the next segment.
  if (path.empty()) return has_routes() && visit(*this);
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view part = path.substr(1, end - 1);
  const bool is_coded = part.find('%') != std::string_view::npos;
  if (const auto found = is_coded ? literal.find(decode_path(part)) : literal.find(part);
      found != literal.end()) {
    if (found->second.visit_matches(path.substr(end), values, visit)) return true;
  }
  if (any != nullptr && !part.empty()) {
    values.push_back(part);
    if (any->visit_matches(path.substr(end), values, visit)) return true;
    values.pop_back();
  }
  if (rest != nullptr) {
    values.push_back(path.substr(1));
    if (visit(*rest)) return true;
    values.pop_back();
  }
  return false;
}

Router::Router() : routes_(std::make_shared<Routes>()) {}

// Adds a route for `method`, or for all methods if `method` is empty.
void Router::add(std::string_view method, std::string_view pattern, Handler handler) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("weft::http::Router: " + std::string(pattern) + ": " + why);
  };
  if (!pattern.starts_with('/')) refuse("a pattern begins with a slash");
  if (!handler) refuse("the handler is empty");
  Node* node = &routes_->root;
  std::vector<std::string> names;
  for (std::string_view left = pattern; !left.empty();) {
    const std::size_t end = std::min(left.find('/', 1), left.size());
    std::string_view part = left.substr(1, end - 1);
    left.remove_prefix(end);
    const bool braces = part.size() > 2 && part.front() == '{' && part.back() == '}';
    if (!braces) {
      if (part.find_first_of("{}") != std::string_view::npos) refuse("a brace within a part");
      node = &node->literal[decode_path(part)];
      continue;
    }
    part = part.substr(1, part.size() - 2);
    const bool all = part.ends_with("...");
    if (all) part.remove_suffix(3);
    if (part.empty()) refuse("a parameter without a name");
    if (all && !left.empty()) refuse("a part after {name...}");
    names.emplace_back(part);
    auto& child = all ? node->rest : node->any;
    if (child == nullptr) child = std::make_unique<Node>();
    node = child.get();
  }
  std::string title(method);
  if (!title.empty()) title += ' ';
  title += pattern;
  const RouteIndex index = index_of_route(title);
  Node::Route route{std::move(handler), std::move(names), std::move(title), index};
  if (method.empty()) {
    if (node->any_method) refuse("has a handler already");
    node->any_method = std::move(route);
  } else if (!node->methods.try_emplace(std::string(method), std::move(route)).second) {
    refuse("has a handler already");
  }
}

Router& Router::route(std::string_view method, std::string_view pattern, Handler handler) {
  if (!is_token(method)) {
    throw std::invalid_argument("weft::http::Router: " + std::string(pattern) +
                                ": the method is no token");
  }
  add(method, pattern, std::move(handler));
  return *this;
}

Router& Router::any(std::string_view pattern, Handler handler) {
  add({}, pattern, std::move(handler));
  return *this;
}

Router& Router::use(Middleware middleware) {
  routes_->middlewares.push_back(std::move(middleware));
  return *this;
}

void Router::operator()(Request& request, Response& response) const {
  routes_->run_from(0, request, response);
}

void Router::Routes::run_from(std::size_t depth, Request& request, Response& response) const {
  if (depth == middlewares.size()) {
    dispatch(request, response);
    return;
  }
  middlewares[depth](request, response, [this, depth](Request& inner, Response& answer) {
    run_from(depth + 1, inner, answer);
  });
}

void Router::Routes::dispatch(Request& request, Response& response) const {
  const std::string_view path = request.path();
  // "*" is not a path; it means the server as a whole.
  if (!path.starts_with('/')) {
    std::set<std::string_view> methods{"OPTIONS"};
    root.collect_methods(methods);
    response.set_status(204);
    response.add_header("Allow", listed(methods));
    (void)response.send({});
    return;
  }
  const Node::Route* route = nullptr;
  Node::Values values;
  (void)root.visit_matches(path, values, [&](const Node& node) {
    route = node.route_for(request.method());
    return route != nullptr;
  });
  if (route == nullptr) {
    refuse(path, response);
    return;
  }
  for (std::size_t i = 0; i < route->names.size(); ++i) {
    request.add_parameter(route->names[i], values[i]);
  }
  request.set_route(route->index);
  const NamedByRoute name(route->title);
  route->handler(request, response);
}

// Refuses the request. If other methods have routes for the path, the response lists these methods.
void Router::Routes::refuse(std::string_view path, Response& response) const {
  std::set<std::string_view> methods;
  Node::Values values;
  (void)root.visit_matches(path, values, [&](const Node& node) {
    node.add_methods(methods);
    return false;
  });
  response.add_header("Content-Type", "text/plain");
  if (methods.empty()) {
    response.set_status(404);
    (void)response.send("Not Found\n");
    return;
  }
  response.set_status(405);
  response.add_header("Allow", listed(methods));
  (void)response.send("Method Not Allowed\n");
}

Handler limited(const RequestLimits& limits, Handler handler) {
  if (!handler) throw std::invalid_argument("weft::http::limited: the handler is empty");
  for (const auto& time : {limits.body, limits.write, limits.request}) {
    if (time && time->count() <= 0) {
      throw std::invalid_argument("weft::http::RequestLimits: a time = " +
                                  std::to_string(time->count()) + " ns; must be above 0");
    }
  }
  return [limits, handler = std::move(handler)](Request& request, Response& response) {
    constexpr int kTooLarge = 413;
    request.set_limits(limits);
    if (limits.body_bytes && request.content_length().value_or(0) > *limits.body_bytes) {
      response.set_status(kTooLarge);
      response.close_after();
      return;
    }
    handler(request, response);
  };
}

}  // namespace weft::http
