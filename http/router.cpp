#include <weft/http/router.hpp>

#include <map>
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

  using Values = std::vector<std::string_view>;
  // The first node, in the order of preference, that has a handler for `path`.
  [[nodiscard]] const Node* find(std::string_view path, Values& values) const;
};

struct Router::Routes {
  Node root;
  std::vector<Middleware> middlewares;

  void dispatch(Request& request, Response& response) const;
  void run_from(std::size_t depth, Request& request, Response& response) const;
};

const Router::Node* Router::Node::find(std::string_view path, Values& values) const {
  // `path` is empty, or begins with the slash before the next part.
  if (path.empty()) return methods.empty() ? nullptr : this;
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view part = path.substr(1, end - 1);
  if (const auto found = literal.find(part); found != literal.end()) {
    if (const Node* node = found->second.find(path.substr(end), values)) return node;
  }
  if (any != nullptr && !part.empty()) {
    values.push_back(part);
    if (const Node* node = any->find(path.substr(end), values)) return node;
    values.pop_back();
  }
  if (rest == nullptr) return nullptr;
  values.push_back(path.substr(1));
  return rest.get();
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
      node = &node->literal[std::string(part)];
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
  Node::Values values;
  const Node* const node = root.find(request.path(), values);
  if (node == nullptr) {
    response.set_status(404);
    (void)response.send("Not Found\n");
    return;
  }
  auto found = node->methods.find(request.method());
  if (found == node->methods.end() && request.method() == "HEAD") found = node->methods.find("GET");
  if (found == node->methods.end()) {
    std::string allowed;
    for (const auto& [method, route] : node->methods) {
      allowed += (allowed.empty() ? "" : ", ") + method;
    }
    response.set_status(405);
    response.add_header("Allow", allowed);
    (void)response.send("Method Not Allowed\n");
    return;
  }
  const Node::Route& route = found->second;
  for (std::size_t i = 0; i < route.names.size(); ++i) {
    request.add_parameter(route.names[i], values[i]);
  }
  route.handler(request, response);
}

}  // namespace weft::http
