// Selects the connection for a request, and follows redirects.
#include <weft/http/client.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <weft/detail/guard.hpp>
#include <weft/error.hpp>
#include <weft/http/cookie_jar.hpp>
#include <weft/http/error.hpp>
#include <weft/net/dial.hpp>
#include <weft/net/unix_stream.hpp>

#include "libs/http/client/client_core.hpp"
#include "libs/http/client/reply_state.hpp"
#include "libs/http/coding/gunzip.hpp"
#include "libs/http/wire/as_tcp.hpp"
#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/head_parser.hpp"
#include "libs/http/wire/header_names.hpp"

namespace weft::http {

using detail::relaxed;

namespace {

ClientOptions checked(ClientOptions options) {
  const auto require = [](bool holds, const char* what, std::int64_t value, const char* bound) {
    if (holds) return;
    throw std::invalid_argument(std::string("weft::http::ClientOptions: ")
                                    .append(what)
                                    .append(" = ")
                                    .append(std::to_string(value))
                                    .append(bound));
  };
  require(options.max_per_host >= 1, "max_per_host", 0, "; must be at least 1");
  require(options.head_bytes >= 256, "head_bytes", static_cast<std::int64_t>(options.head_bytes),
          "; must be at least 256");
  require(options.headers >= 1, "headers", 0, "; must be at least 1");
  require(options.continue_wait >= std::chrono::nanoseconds(0), "continue_wait",
          options.continue_wait.count(), " ns; must be at least 0");
  require(!options.decompress || Gunzip::is_built_in(), "decompress", 1,
          "; must be false: the library is built without zlib");
  require(options.connect > std::chrono::nanoseconds(0), "connect", options.connect.count(),
          " ns; must be above 0");
  return options;
}

std::optional<ProxyRoute> proxy_of(const ClientOptions& options) {
  if (options.proxy.empty()) return std::nullopt;
  const auto refuse = [](const char* why) {
    throw std::invalid_argument(std::string("weft::http::ClientOptions: proxy: ") + why);
  };
  auto [url, malformed] = Url::parse(options.proxy);
  if (malformed || url.scheme != "http") refuse("must be a URL of http");
  if (options.unix_socket) refuse("cannot be combined with unix_socket");
  const std::string& authorization = options.proxy_authorization;
  if (!std::all_of(authorization.begin(), authorization.end(), is_value_char)) {
    refuse("proxy_authorization must be the value of a header");
  }
  return ProxyRoute{std::move(url), authorization};
}

bool may_be_repeated(const Call& call) noexcept {
  constexpr std::array<std::string_view, 6> kSafe = {"GET",    "HEAD",    "PUT",
                                                     "DELETE", "OPTIONS", "TRACE"};
  return !call.body_source && std::find(kSafe.begin(), kSafe.end(), call.method) != kSafe.end();
}

// Returns whether the error may mean that the server closed the connection before it received the
// request. Timeouts, cancellations and malformed responses do not mean this.
bool was_closed(std::error_code error) noexcept {
  if (error.category() == error_category()) return error == Errc::unexpected_end;
  return error != weft::Errc::timed_out && error != weft::Errc::cancelled;
}

bool redirects(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_same_origin(const Url& left, const Url& right) noexcept {
  return left.scheme == right.scheme && left.host == right.host && left.port == right.port;
}

// Returns whether a redirect to another server must drop the header.
bool is_secret(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 6> kSecret = {"authorization",    "proxy-authorization",
                                                       "cookie",           "cookie2",
                                                       "www-authenticate", "proxy-authenticate"};
  return is_one_of(name, kSecret);
}

// Prepares `call` for the target of a redirect. Returns false, and leaves `call` unchanged, if the
// body can be read only once and would have to be sent again.
bool prepare_redirect(int status, const Url& from, const Url& to, Call& call) {
  const bool reads = call.method == "GET" || call.method == "HEAD";
  const bool becomes_get =
      status == 303 || ((status == 301 || status == 302) && call.method == "POST");
  const bool keeps_body = !becomes_get && (!reads || status == 307 || status == 308);
  if (keeps_body && call.body_source) return false;
  if (!is_same_origin(from, to)) {
    std::erase_if(call.headers, [](const auto& header) {
      return is_secret(header.first) || equal_tokens(header.first, "host");
    });
  }
  if (keeps_body) return true;
  if (!reads) call.method = "GET";
  call.body.clear();
  call.body_source = nullptr;
  std::erase_if(call.headers, [](const auto& header) {
    return equal_tokens(header.first.substr(0, 8), "content-");
  });
  return true;
}

}  // namespace

ClientCore::ClientCore(ClientOptions options)
    : options_(checked(std::move(options))), proxy_(proxy_of(options_)) {}

std::shared_ptr<HostPool> ClientCore::pool_of(const Url& url) {
  constexpr std::size_t kMost = 1024;
  const std::string key = url.scheme + "://" + url.host + " " + std::to_string(url.port);
  std::vector<std::shared_ptr<HostPool>> unused;  // Destroyed after `guard` unlocks.
  const detail::Guard guard(mutex_);
  if (hosts_.size() >= kMost) {
    std::erase_if(hosts_, [&](auto& host) {
      if (host.second.use_count() > 1) return false;
      unused.push_back(std::move(host.second));
      return true;
    });
  }
  auto& pool = hosts_[key];
  if (pool == nullptr) pool = std::make_shared<HostPool>(options_.max_per_host, options_.idle);
  return pool;
}

namespace {

net::Result<net::TcpStream> reach(const Url& url, const DialRoute& route, const Until& until) {
  if (route.unix_socket) {
    auto [stream, error] = net::UnixStream::connect(*route.unix_socket, until);
    if (error) return {.error = error};
    return {.value = as_tcp(std::move(stream))};
  }
  const Url& next = route.proxy != nullptr ? route.proxy->url : url;
  const auto [addresses, unknown] = net::resolve(next.host, next.port, route.resolver, until);
  if (unknown) return {.error = unknown};
  return net::dial(addresses, until);
}

// Asks the proxy at the other end of `connection` for a tunnel to the URL's server.
std::error_code open_tunnel(ClientConnection& connection, const Url& url, const ProxyRoute& proxy,
                            const Until& until) {
  constexpr std::size_t kMost = 16 * 1024;
  Call call{.method = "CONNECT"};
  if (!proxy.authorization.empty()) {
    call.headers.emplace_back("Proxy-Authorization", proxy.authorization);
  }
  if (const auto error = connection.write(make_call_head(url, call), until)) return error;
  for (;;) {
    std::string text;
    if (const auto error = receive_head(connection, kMost, text, until)) return error;
    Head head;
    if (const Fault fault = parse_response_head(text, Limits::kMaxHeaders, head)) return *fault;
    if (head.status >= 300) return Errc::refused_by_proxy;
    // A TLS server sends nothing before the client does, so any bytes after the head come from the
    // proxy itself.
    if (head.status >= 200 && !connection.input.rest().empty()) return Errc::malformed_start;
    if (head.status >= 200) return {};
    if (until.is_over()) return until.reason();
  }
}

}  // namespace

net::Result<std::unique_ptr<ClientConnection>> dial_server(const Url& url, const DialRoute& route,
                                                           const Until& until) {
  const bool is_secure = url.scheme == "https";
  if (is_secure && !route.secure) return {.error = Errc::unsupported};
  auto [stream, unreachable] = reach(url, route, until);
  if (unreachable) return {.error = unreachable};
  auto connection = std::make_unique<ClientConnection>();
  connection->stream = std::move(stream);
  if (is_secure && route.proxy != nullptr) {
    if (const auto error = open_tunnel(*connection, url, *route.proxy, until)) {
      return {.error = error};
    }
  }
  if (is_secure) {
    auto [layer, refused] =
        route.secure(connection->stream, url.host.substr(0, url.host.find('%')), until);
    if (refused) return {.error = refused};
    connection->layer = std::move(layer);
  }
  return {.value = std::move(connection)};
}

net::Result<std::unique_ptr<ClientConnection>> ClientCore::connect(const Url& url,
                                                                   const Until& until) {
  const Until limit = until.but_before(Deadline::after(options_.connect));
  auto connection =
      dial_server(url, {options_.secure, options_.unix_socket, options_.resolver, proxy()}, limit);
  // Relaxed here and below: the numbers publish no other data.
  if (!connection.error) connections_.fetch_add(1, relaxed);
  return connection;
}

net::Result<Reply> ClientCore::send_to(const Url& url, Call& call, const Until& until) {
  constexpr int kExpectationFailed = 417;
  {
    auto result = send_once(url, call, until);
    if (result.error || result.value.status() != kExpectationFailed ||
        !take_expectation_back(call)) {
      return result;
    }
    store_cookies(url, result.value);
  }  // The destruction of the 417 response frees its slot, which the second call may need.
  return send_once(url, call, until);
}

net::Result<Reply> ClientCore::send_with_cookies(const Url& url, Call& call, const Until& until) {
  const auto is_cookie = [](const auto& header) { return equal_tokens(header.first, "cookie"); };
  std::string ours;
  if (std::none_of(call.headers.begin(), call.headers.end(), is_cookie)) {
    ours = options_.cookies->header_for(url);
  }
  if (!ours.empty()) call.headers.emplace_back("Cookie", ours);
  auto result = send_to(url, call, until);
  if (!ours.empty()) std::erase_if(call.headers, is_cookie);  // A redirect may need other cookies.
  if (!result.error) store_cookies(url, result.value);
  return result;
}

void ClientCore::store_cookies(const Url& url, const Reply& reply) {
  if (options_.cookies == nullptr) return;
  for (const Header& header : reply.headers()) {
    if (equal_tokens(header.name, "set-cookie")) options_.cookies->add(url, header.value);
  }
}

net::Result<Reply> ClientCore::send_once(const Url& url, const Call& call, const Until& until) {
  const std::string head = make_call_head(url, call, proxy());
  if (head.empty()) return {.error = Errc::malformed_call};
  auto pool = pool_of(url);
  if (!pool->slots.try_acquire_until(until)) return {.error = until.reason()};
  Lease lease(pool);
  for (;;) {
    lease.set(pool->take());
    if (lease && !lease->is_quiet()) continue;
    if (!lease) {
      auto [connection, error] = connect(url, until);
      if (error) return {.error = error};
      lease.set(std::move(connection));
    }
    const bool reused = lease->reused;
    if (reused) reused_.fetch_add(1, relaxed);
    auto result = send_by(lease, url, head, call, until);
    if (!result.error || !reused || !was_closed(result.error) || !may_be_repeated(call)) {
      return result;
    }
    retried_.fetch_add(1, relaxed);
  }
}

// Forbids redirects from https to http. Forbids all redirects to https if the client has no layer
// for https.
bool ClientCore::may_lead(const Url& from, const Url& to) const noexcept {
  return to.scheme == "https" ? options_.secure != nullptr : from.scheme == "http";
}

net::Result<Reply> ClientCore::send(Call call, const Until& until) {
  auto [url, malformed] = Url::parse(call.url);
  if (malformed) return {.error = malformed};
  const auto decides_coding = [](const auto& header) {
    return equal_tokens(header.first, "accept-encoding") || equal_tokens(header.first, "range");
  };
  if (options_.decompress && std::ranges::none_of(call.headers, decides_coding)) {
    call.headers.emplace_back("Accept-Encoding", "gzip");
  }
  for (std::size_t count = 0;; ++count) {
    auto result = options_.cookies != nullptr ? send_with_cookies(url, call, until)
                                              : send_to(url, call, until);
    if (result.error || options_.max_redirects == 0 || !redirects(result.value.status()) ||
        call.method == "CONNECT") {
      return result;
    }
    const auto place = result.value.header("location");
    if (!place) return result;
    auto [next, wrong] = url.resolve(*place);
    // If the client cannot follow the redirect, it returns the redirect as an ordinary response for
    // the caller to handle.
    if (wrong || !may_lead(url, next) ||
        !prepare_redirect(result.value.status(), url, next, call)) {
      return result;
    }
    if (count == options_.max_redirects) return {.error = Errc::too_many_redirects};
    result.value.state().discard(until);  // The destruction of the reply also frees its slot.
    url = std::move(next);
    call.url = url.to_string();
  }
}

ClientStats ClientCore::stats() const noexcept {
  return {.connections = connections_.load(relaxed),
          .reused = reused_.load(relaxed),
          .retried = retried_.load(relaxed)};
}

Client::Client(ClientOptions options) : core_(std::make_shared<ClientCore>(std::move(options))) {}
Client::~Client() = default;

net::Result<Reply> Client::send(const Call& call, const Until& until) {
  return core_->send(call, until);
}

ClientStats Client::stats() const noexcept { return core_->stats(); }

}  // namespace weft::http
