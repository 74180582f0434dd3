#include <weft/http/router.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft::http {

// A place in the tree of all patterns: what may stand in the next part of a path.
struct Router::Node {
  std::map<std::string, Node, std::less<>> literal;
  std::unique_ptr<Node> any;   // {name}
  std::unique_ptr<Node> rest;  // {name...}
  // The names of the parameters differ from route to route, so they are kept with the handler.
  struct Route {
    Handler handler;
    std::vector<std::string> names;
  };
  std::map<std::string, Route, std::less<>> methods;

  // Null if this place has none for the method.
  [[nodiscard]] const Route* route_for(std::string_view method) const;

  using Values = std::vector<std::string_view>;
  // Shows `visit` the nodes that have handlers for `path`, in the order of preference, up to the
  // one for which it returns true; then `values` are those of the parameters there.
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
  return found == methods.end() ? nullptr : &found->second;
}

template <class Visit>
bool Router::Node::visit_matches(std::string_view path, Values& values, const Visit& visit) const {
  // `path` is empty, or begins with the slash before the next part.
  if (path.empty()) return !methods.empty() && visit(*this);
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

Router& Router::route(std::string_view method, std::string_view pattern, Handler handler) {
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
    if (all && !left.empty()) refuse("something behind what takes all");
    names.emplace_back(part);
    auto& child = all ? node->rest : node->any;
    if (child == nullptr) child = std::make_unique<Node>();
    node = child.get();
  }
  const auto [place, added] = node->methods.try_emplace(
      std::string(method), Node::Route{std::move(handler), std::move(names)});
  if (!added) refuse("has a handler already");
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
  const Node::Route* route = nullptr;
  Node::Values values;
  // "*" is no path, but all of the server.
  if (path.starts_with('/')) {
    (void)root.visit_matches(path, values, [&](const Node& node) {
      route = node.route_for(request.method());
      return route != nullptr;
    });
  }
  if (route == nullptr) {
    refuse(path, response);
    return;
  }
  for (std::size_t i = 0; i < route->names.size(); ++i) {
    request.add_parameter(route->names[i], values[i]);
  }
  route->handler(request, response);
}

// With the methods of all routes that the path has, if there are any.
void Router::Routes::refuse(std::string_view path, Response& response) const {
  std::set<std::string_view> methods;
  Node::Values values;
  if (path.starts_with('/')) {
    (void)root.visit_matches(path, values, [&](const Node& node) {
      for (const auto& [method, route] : node.methods) methods.insert(method);
      return false;
    });
  }
  if (methods.empty()) {
    response.set_status(404);
    (void)response.send("Not Found\n");
    return;
  }
  std::string allowed;
  for (const std::string_view method : methods) {
    if (!allowed.empty()) allowed += ", ";
    allowed += method;
  }
  response.set_status(405);
  response.add_header("Allow", allowed);
  (void)response.send("Method Not Allowed\n");
}

}  // namespace weft::http
