// Selects a handler by the host that a request names.
#pragma once

#include <memory>
#include <string_view>
#include <weft/http/server.hpp>

namespace weft::http {

// Works as a Handler that selects another Handler by Request::host(), so that one server can have
// several sites:
//
//   Hosts hosts;
//   hosts.host("example.org", site).host("*.example.org", tenants).otherwise(unknown);
//   Server server(std::move(hosts));
//
// "*." stands for exactly one label, as in certificates: "*.example.org" matches "a.example.org",
// but neither "example.org" nor "b.a.example.org". A name without "*." takes precedence. The
// comparison ignores case, port and a final dot, and accepts any notation of an IPv6 address. A
// request for an unknown host, or without a host, goes to the handler passed to otherwise(), or
// gets response 421 if otherwise() was not called. The handlers may be Routers. Copies share their
// hosts. tls::ServerOptions::more_certificates contains the hosts' certificates.
// Context: once a server uses the object, any number of fibers; a call may park.
// Before that, one caller at a time may add hosts; adding does not park.
// Throws: std::bad_alloc. Calls that add a handler also throw std::invalid_argument if the handler
// is empty, or if the host or otherwise() already has a handler.
class Hosts {
 public:
  // Makes a table without hosts.
  Hosts();

  // Adds a host: "example.org", "*.example.org", "192.0.2.1" or "[2001:db8::1]".
  // Throws: also std::invalid_argument if `name` is not a host name or has a port.
  Hosts& host(std::string_view name, Handler handler);
  // Sets the handler for all other requests.
  Hosts& otherwise(Handler handler);

  // Passes a request to its host's handler; the server calls this function.
  // Throws: whatever the handler throws.
  void operator()(Request& request, Response& response) const;

 private:
  struct Table;
  std::shared_ptr<Table> table_;
};

}  // namespace weft::http
