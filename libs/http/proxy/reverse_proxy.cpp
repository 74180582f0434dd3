#include <weft/http/reverse_proxy.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <utility>
#include <weft/context.hpp>
#include <weft/deadline.hpp>
#include <weft/detail/atomic.hpp>
#include <weft/detail/stop_registration.hpp>
#include <weft/error.hpp>
#include <weft/http/error.hpp>
#include <weft/http/url.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/wait_group.hpp>

#include "libs/http/proxy/pass_on.hpp"

namespace weft::http {

using detail::relaxed;

namespace {

void require_proxy(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("weft::http::ReverseProxyOptions: " + what);
}

ReverseProxyOptions checked_proxy(ReverseProxyOptions options) {
  require_proxy(!options.origins.empty(), "origins is empty; must name a server");
  for (const std::string& origin : options.origins) {
    const auto [url, malformed] = Url::parse(origin);
    require_proxy(!malformed && (url.scheme == "http" || url.scheme == "https") &&
                      url.target == "/" && !origin.ends_with('/') &&
                      origin.find('#') == std::string::npos,
                  "origins: " + origin + ": must be a URL of http or https without a path");
    require_proxy(url.scheme == "http" || options.client.secure != nullptr,
                  "origins: " + origin + ": https needs client.secure");
  }
  require_proxy(options.client.cookies == nullptr, "client.cookies must be null");
  constexpr std::chrono::nanoseconds kNone(0);
  require_proxy(options.rest >= kNone, "rest must be at least 0");
  require_proxy(options.answer > kNone, "answer must be above 0");
  require_proxy(options.health.target.empty() || options.health.target.starts_with('/'),
                "health.target must begin with a slash");
  require_proxy(options.health.every > kNone, "health.every must be above 0");
  require_proxy(options.health.wait > kNone, "health.wait must be above 0");
  options.client.max_redirects = 0;
  options.forward.secure = options.client.secure;
  return options;
}

bool is_idempotent(std::string_view method) noexcept {
  constexpr std::array<std::string_view, 6> kMethods = {"GET",   "HEAD", "OPTIONS",
                                                        "TRACE", "PUT",  "DELETE"};
  return std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
}

// Returns whether the error proves that nothing has been sent, because no connection was made.
// "host unreachable" does not prove this, because an established connection may fail with it, too.
bool is_unreachable(std::error_code error) noexcept {
  return error == std::errc::connection_refused;
}

// Returns whether the client has disconnected. A stop request alone does not prove this, because a
// context whose deadline has passed may also request a stop.
bool has_left(const Until& request) noexcept {
  return request.stop_requested() && !request.deadline().passed();
}

}  // namespace

struct ReverseProxy::Core {
  // All accesses are relaxed, because the counts and hints publish no other data.
  struct Origin {
    std::string url;
    detail::Atomic<bool> is_healthy{true};
    detail::Atomic<std::int64_t> rests_until{0};
    detail::Atomic<std::size_t> running{0};
    detail::Atomic<std::uint64_t> requests{0};
    detail::Atomic<std::uint64_t> failures{0};

    [[nodiscard]] bool rests(std::int64_t now) const noexcept {
      return rests_until.load(relaxed) > now;
    }
  };

  // Reports the result of one attempt, with the reason for a failure.
  struct Attempt {
    std::error_code error = {};
    bool has_read_body = false;       // If true, the body cannot be sent again.
    std::error_code body_error = {};  // Not empty if the body could not be read.
    // True if the attempt may have timed out because other requests used all connections.
    bool may_lack_connections = false;
  };

  explicit Core(ReverseProxyOptions from);
  ~Core() {
    (void)stop.request_stop();
    checks.wait();
  }

  void start();
  void check(Origin& origin, const std::stop_token& token);
  [[nodiscard]] Origin* choose(std::vector<bool>& tried) noexcept;
  [[nodiscard]] Attempt ask(Origin& origin, Request& request, Response& response,
                            const Until& until);

  const ReverseProxyOptions options;
  std::deque<Origin> origins;
  Client client;
  Client checker;
  detail::Atomic<std::size_t> turn{0};  // Relaxed: the value publishes no other data.
  std::stop_source stop;
  WaitGroup checks;
};

ReverseProxy::Core::Core(ReverseProxyOptions from)
    : options(checked_proxy(std::move(from))), client(options.client), checker([this] {
        ClientOptions few = options.client;
        few.max_per_host = 1;
        few.body_bytes = 64 * 1024;
        return few;
      }()) {
  for (const std::string& origin : options.origins) origins.emplace_back().url = origin;
}

void ReverseProxy::Core::start() {
  if (options.health.target.empty()) return;
  for (Origin& origin : origins) {
    checks.go({.name = "health check"}, [this, &origin, token = stop.get_token()] {
      while (!token.stop_requested()) {
        check(origin, token);
        (void)this_fiber::sleep_for(options.health.every, token);
      }
    });
  }
}

// Checks a server. An exception, such as std::bad_alloc, does not count as a failure of the server:
// its state stays unchanged.
void ReverseProxy::Core::check(Origin& origin, const std::stop_token& token) {
  try {
    const Until until(Deadline::after(options.health.wait), token);
    auto [reply, error] = checker.get(origin.url + options.health.target, until);
    const bool is_good = !error && reply.status() < 400 && !reply.read_all(until).error;
    if (!token.stop_requested()) origin.is_healthy.store(is_good, relaxed);
  } catch (const std::exception&) {
    return;
  }
}

// Returns the best server that this request has not tried, or null. Marks that server as tried.
ReverseProxy::Core::Origin* ReverseProxy::Core::choose(std::vector<bool>& tried) noexcept {
  const std::int64_t now = Deadline::now_nanoseconds();
  const std::size_t count = origins.size();
  const std::size_t first = turn.fetch_add(1, relaxed);
  std::size_t best = count;
  std::pair<bool, std::size_t> least{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (first + i) % count;
    if (tried[at]) continue;
    const Origin& origin = origins[at];
    const bool is_bad = !origin.is_healthy.load(relaxed) || origin.rests(now);
    const std::pair rank(is_bad, origin.running.load(relaxed));
    if (best < count && rank >= least) continue;
    best = at;
    least = rank;
  }
  if (best == count) return nullptr;
  tried[best] = true;
  return &origins[best];
}

ReverseProxy::Core::Attempt ReverseProxy::Core::ask(Origin& origin, Request& request,
                                                    Response& response, const Until& until) {
  struct Running {
    Origin& origin;
    explicit Running(Origin& at) noexcept : origin(at) {
      origin.requests.fetch_add(1, relaxed);
      origin.running.fetch_add(1, relaxed);
    }
    ~Running() { origin.running.fetch_sub(1, relaxed); }
  };
  const Running running(origin);
  Until limit = until.but_before(Deadline::after(options.answer));
  if (asks_for_upgrade(request)) {
    return {.error = forward_upgrade(request, response, origin.url, options.forward,
                                     UpgradeLimits{.head = limit, .refusal = until})};
  }
  Attempt attempt;
  Call call = forward_call(request, origin.url, options.forward);
  // The time limit options.answer excludes the time in which the client sends its body.
  std::stop_source late(std::nostopstate);
  detail::StopRegistration<detail::RequestStop> passed_on;
  DelayedCall alarm;
  const struct StopAlarm {
    DelayedCall& alarm;
    ~StopAlarm() { (void)alarm.stop(); }
  } stop_alarm{alarm};
  if (call.body_source) {
    late = std::stop_source();
    limit = Until(until.deadline(), late.get_token());
    if (until.token() != nullptr) passed_on.add(*until.token(), {late});
    const auto set_alarm = [&] {
      if (options.answer != kNever) {
        alarm = call_after(options.answer, detail::RequestStop{late});
      }
    };
    set_alarm();  // Limits the wait for a connection and the wait for status 100.
    call.body_source = [&, set_alarm,
                        read = std::move(call.body_source)](std::span<std::byte> room) {
      attempt.has_read_body = true;
      (void)alarm.stop();
      auto part = read(room);
      if (part.error != weft::Errc::end_of_stream) attempt.body_error = part.error;
      set_alarm();
      return part;
    };
  }
  auto [reply, error] = client.send(call, limit);
  (void)alarm.stop();
  const bool is_late = error == weft::Errc::cancelled && !until.stop_requested();
  attempt.error = is_late ? make_error_code(weft::Errc::timed_out) : error;
  attempt.may_lack_connections = attempt.error == weft::Errc::timed_out &&
                                 origin.running.load(relaxed) > options.client.max_per_host;
  if (!error) attempt.error = forward_reply(reply, response, until);
  return attempt;
}

ReverseProxy::ReverseProxy(ReverseProxyOptions options)
    : core_(std::make_unique<Core>(std::move(options))) {
  core_->start();
}
ReverseProxy::~ReverseProxy() = default;

void ReverseProxy::operator()(Request& request, Response& response) {
  const Until until = request.context();
  std::vector<bool> tried(core_->origins.size());
  Core::Attempt attempt{.error = weft::Errc::timed_out};
  while (!until.is_over()) {
    Core::Origin* const origin = core_->choose(tried);
    if (origin == nullptr) break;
    attempt = core_->ask(*origin, request, response, until);
    if (!attempt.error) return;
    if (core_->options.on_error) core_->options.on_error(request, origin->url, attempt.error);
    // If the request's body could not be read or the client has disconnected, the http::Server that
    // called the proxy ends the request.
    if (attempt.body_error || has_left(until)) return;
    // An invalid request or response, or an error after the response has begun, does not show that
    // the server has failed.
    if (response.started() || attempt.error == ErrorKind::malformed) break;
    if (!attempt.may_lack_connections) {
      origin->failures.fetch_add(1, relaxed);
      origin->rests_until.store(Deadline::after(core_->options.rest).nanoseconds(), relaxed);
    }
    if (attempt.has_read_body) break;
    if (!is_idempotent(request.method()) && !is_unreachable(attempt.error)) break;
  }
  if (response.started() || has_left(until)) return;
  constexpr int kBadGateway = 502;
  constexpr int kGatewayTimeout = 504;
  response.set_status(attempt.error == weft::Errc::timed_out ? kGatewayTimeout : kBadGateway);
  response.set_header("Content-Type", "text/plain");
  (void)response.send("The server behind this proxy does not answer.\n");
}

std::vector<OriginStats> ReverseProxy::origins() const {
  const std::int64_t now = Deadline::now_nanoseconds();
  std::vector<OriginStats> all;
  for (const Core::Origin& origin : core_->origins) {
    all.push_back({.origin = origin.url,
                   .is_healthy = origin.is_healthy.load(relaxed),
                   .rests = origin.rests(now),
                   .running = origin.running.load(relaxed),
                   .requests = origin.requests.load(relaxed),
                   .failures = origin.failures.load(relaxed)});
  }
  return all;
}

}  // namespace weft::http
