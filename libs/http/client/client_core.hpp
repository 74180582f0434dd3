// Holds the connections that a client's requests share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <weft/detail/atomic.hpp>
#include <weft/detail/thread_annotations.hpp>
#include <weft/error.hpp>
#include <weft/http/client.hpp>
#include <weft/http/layer.hpp>
#include <weft/http/url.hpp>
#include <weft/mutex.hpp>
#include <weft/net/unix_address.hpp>

#include "libs/http/client/host_pool.hpp"

namespace weft::http {

// Describes a proxy between the client and all servers; see ClientOptions.
struct ProxyRoute {
  Url url;
  std::string authorization;
};

// Returns the head of a request. If `proxy` is not null and the URL's scheme is http, the head is
// for a request to the proxy. Returns an empty string if the call is invalid.
[[nodiscard]] std::string make_call_head(const Url& url, const Call& call,
                                         const ProxyRoute* proxy = nullptr);

// Specifies how to reach a server; see ClientOptions.
struct DialRoute {
  const ClientLayer& secure;
  const std::optional<net::UnixAddress>& unix_socket;
  net::AnyResolver* resolver = nullptr;
  const ProxyRoute* proxy = nullptr;
};

// Dials the URL's server. Returns Errc::unsupported if the URL's scheme is https and
// DialRoute::secure is empty.
net::Result<std::unique_ptr<ClientConnection>> dial_server(const Url& url, const DialRoute& route,
                                                           const Until& until);

// Receives the next response head into `text`.
std::error_code receive_head(ClientConnection& connection, std::size_t most, std::string& text,
                             const Until& until);

// Removes "Expect: 100-continue" from a call that can be repeated. Returns false if the header is
// absent, or the body can be read only once.
[[nodiscard]] bool take_expectation_back(Call& call) noexcept;

class ClientCore {
 public:
  explicit ClientCore(ClientOptions options);

  net::Result<Reply> send(Call call, const Until& until);
  [[nodiscard]] ClientStats stats() const noexcept;

 private:
  // Sends a call. Repeats the call without its Expect header if the server refuses that header (RFC
  // 9110, 10.1.1).
  net::Result<Reply> send_to(const Url& url, Call& call, const Until& until);
  // Sends a call as send_to() does, with the jar's cookies. Adds the cookies of the response to the
  // jar.
  net::Result<Reply> send_with_cookies(const Url& url, Call& call, const Until& until);
  // Adds the cookies of a response to the jar, if there is one.
  void store_cookies(const Url& url, const Reply& reply);
  net::Result<Reply> send_once(const Url& url, const Call& call, const Until& until);
  // Sends the request on the lease's connection.
  net::Result<Reply> send_by(Lease& lease, const Url& url, const std::string& head,
                             const Call& call, const Until& until);
  // Sends the request, and reads the head of its response.
  std::error_code converse(ClientConnection& connection, const std::string& head, const Call& call,
                           Reply::State& state, const Until& until) const;
  // Returns whether the client may follow a redirect from `from` to `to`.
  [[nodiscard]] bool may_lead(const Url& from, const Url& to) const noexcept;
  [[nodiscard]] std::shared_ptr<HostPool> pool_of(const Url& url);
  net::Result<std::unique_ptr<ClientConnection>> connect(const Url& url, const Until& until);

  [[nodiscard]] const ProxyRoute* proxy() const noexcept { return proxy_ ? &*proxy_ : nullptr; }

  const ClientOptions options_;
  const std::optional<ProxyRoute> proxy_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<HostPool>> hosts_ WEFT_GUARDED_BY(mutex_);
  // All accesses are relaxed, because the counts publish no other data.
  detail::Atomic<std::uint64_t> connections_{0};
  detail::Atomic<std::uint64_t> reused_{0};
  detail::Atomic<std::uint64_t> retried_{0};
};

}  // namespace weft::http
