#include <weft/http/hosts.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "libs/http/wire/authority.hpp"

namespace weft::http {

namespace {

constexpr std::string_view kOneLabel = "*.";

// Returns a host name in lower case and without a final dot, or an IPv6 address in its shortest
// form.
std::string comparable(std::string_view host) {
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  in6_addr address{};
  if (::inet_pton(AF_INET6, std::string(host).c_str(), &address) == 1 &&
      ::inet_ntop(AF_INET6, &address, shortest.data(), shortest.size()) != nullptr) {
    return shortest.data();
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string text(host);
  std::ranges::transform(text, text.begin(), [](char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character + 32) : character;
  });
  return text;
}

[[noreturn]] void refuse_host(std::string_view name, const char* why) {
  throw std::invalid_argument("weft::http::Hosts: " + std::string(name) + ": " + why);
}

}  // namespace

struct Hosts::Table {
  std::map<std::string, Handler, std::less<>> hosts;  // The keys are results of comparable().
  Handler otherwise;

  // Returns the handler for the host; null if there is none.
  [[nodiscard]] const Handler* find(std::string_view value) const {
    Authority parts;
    if (parse_authority(value, parts)) {
      std::string name = comparable(parts.host);
      auto found = hosts.find(name);
      const std::size_t dot = name.find('.');
      if (found == hosts.end() && !parts.is_literal && dot != std::string::npos && dot > 0) {
        name.replace(0, dot, "*");
        found = hosts.find(name);
      }
      if (found != hosts.end()) return &found->second;
    }
    return otherwise ? &otherwise : nullptr;
  }
};

Hosts::Hosts() : table_(std::make_shared<Table>()) {}

Hosts& Hosts::host(std::string_view name, Handler handler) {
  const bool is_wild = name.starts_with(kOneLabel);
  Authority parts;
  if (!parse_authority(is_wild ? name.substr(kOneLabel.size()) : name, parts) ||
      !parts.zone.empty() || parts.host.find('*') != std::string_view::npos ||
      parts.host.starts_with('.') || (is_wild && parts.is_literal)) {
    refuse_host(name, "it is no name of a host");
  }
  if (parts.port || name.ends_with(':')) refuse_host(name, "a port is not compared");
  if (!handler) refuse_host(name, "the handler is empty");
  std::string key = comparable(parts.host);
  if (key.empty()) refuse_host(name, "it is no name of a host");
  if (is_wild) key.insert(0, kOneLabel);
  if (!table_->hosts.try_emplace(std::move(key), std::move(handler)).second) {
    refuse_host(name, "has a handler already");
  }
  return *this;
}

Hosts& Hosts::otherwise(Handler handler) {
  if (!handler) refuse_host("otherwise", "the handler is empty");
  if (table_->otherwise) refuse_host("otherwise", "has a handler already");
  table_->otherwise = std::move(handler);
  return *this;
}

void Hosts::operator()(Request& request, Response& response) const {
  if (const Handler* handler = table_->find(request.host())) {
    (*handler)(request, response);
    return;
  }
  constexpr int kMisdirected = 421;
  response.set_status(kMisdirected);
  response.add_header("Content-Type", "text/plain");
  (void)response.send("Misdirected Request\n");
}

}  // namespace weft::http
