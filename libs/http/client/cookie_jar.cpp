#include <weft/http/cookie_jar.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/detail/guard.hpp>
#include <weft/mutex.hpp>

#include "libs/http/wire/bytes.hpp"
#include "libs/http/wire/set_cookie.hpp"

namespace weft::http {

namespace {

struct Kept {
  std::string name;
  std::string value;
  std::string path;
  bool host_only = false;
  bool secure = false;
  Deadline end = Deadline::never();
  std::uint64_t created = 0;  // `created` and `used` are values of State::clock, a count of calls.
  std::uint64_t used = 0;
};

// Returns whether a new cookie replaces an old cookie of the same domain.
bool are_same(const Kept& left, const Kept& right) noexcept {
  return left.name == right.name && left.path == right.path;
}

bool is_address(std::string_view host) noexcept {
  return host.find(':') != std::string_view::npos || (!host.empty() && is_digit(host.back()));
}

bool domain_matches(std::string_view host, std::string_view domain) noexcept {
  if (host == domain) return true;
  return !is_address(host) && host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.';
}

std::string_view path_of(const Url& url) noexcept {
  return std::string_view(url.target).substr(0, url.target.find('?'));
}

// Returns the folder of a path without the final slash, or "/" for the root.
std::string_view default_path(std::string_view path) noexcept {
  const std::size_t last = path.rfind('/');
  return !path.starts_with('/') || last == 0 ? std::string_view("/") : path.substr(0, last);
}

bool path_matches(std::string_view path, std::string_view cookie) noexcept {
  if (!path.starts_with(cookie)) return false;
  return path.size() == cookie.size() || cookie.ends_with('/') || path[cookie.size()] == '/';
}

}  // namespace

// Invariants
//   I1  count is the number of cookies in domains, and no list in domains is empty. Not asserted,
//       because an assertion would take as long as the operation itself.
//   I2  No two cookies of a domain have the same name and path. Not asserted, because add() ensures
//       this, because it replaces a cookie that has the same name and path.
struct CookieJar::State {
  using Domains = std::map<std::string, std::vector<Kept>, std::less<>>;

  explicit State(const CookieJarOptions& setup) : options(setup) {}

  void add(const std::string& domain, Kept cookie) WEFT_REQUIRES(mutex) {
    const auto found = domains.find(domain);
    if (found == domains.end()) {
      domains.emplace(domain, std::vector<Kept>(1, std::move(cookie)));
    } else {
      std::vector<Kept>& list = found->second;
      const auto old = std::find_if(list.begin(), list.end(),
                                    [&cookie](const Kept& each) { return are_same(each, cookie); });
      if (old != list.end()) {
        cookie.created = old->created;
        *old = std::move(cookie);
        return;
      }
      list.push_back(std::move(cookie));
    }
    ++count;
    std::vector<Kept>& list = domains.find(domain)->second;
    if (list.size() > options.max_per_domain) drop_one(list);
    if (count > options.max_cookies) drop_oldest();
  }

  void remove(const std::string& domain, const Kept& cookie) WEFT_REQUIRES(mutex) {
    const auto found = domains.find(domain);
    if (found == domains.end()) return;
    count -= std::erase_if(found->second,
                           [&cookie](const Kept& each) { return are_same(each, cookie); });
    if (found->second.empty()) domains.erase(found);
  }

  // Returns whether `left` is dropped before `right`: expired cookies are dropped first, then the
  // least recently used cookie.
  static bool goes_first(const Kept& left, const Kept& right) noexcept {
    const bool is_over = left.end.passed();
    return is_over != right.end.passed() ? is_over : left.used < right.used;
  }

  static std::vector<Kept>::iterator least(std::vector<Kept>& list) {
    return std::min_element(list.begin(), list.end(), &goes_first);
  }

  void drop_one(std::vector<Kept>& list) WEFT_REQUIRES(mutex) {
    list.erase(least(list));
    --count;
  }

  void drop_oldest() WEFT_REQUIRES(mutex) {
    auto oldest = domains.begin();
    for (auto each = domains.begin(); each != domains.end(); ++each) {
      if (goes_first(*least(each->second), *least(oldest->second))) oldest = each;
    }
    drop_one(oldest->second);
    if (oldest->second.empty()) domains.erase(oldest);
  }

  // Returns whether a cookie from an insecure origin would hide a secure cookie.
  [[nodiscard]] bool would_hide(std::string_view domain, const Kept& cookie) const
      WEFT_REQUIRES(mutex) {
    return std::any_of(domains.begin(), domains.end(), [&](const auto& entry) {
      if (!domain_matches(entry.first, domain) && !domain_matches(domain, entry.first)) {
        return false;
      }
      return std::any_of(entry.second.begin(), entry.second.end(), [&cookie](const Kept& each) {
        return each.secure && !each.end.passed() && each.name == cookie.name &&
               path_matches(cookie.path, each.path);
      });
    });
  }

  // Adds to `found` the cookies of one domain that apply to `url`, and drops expired cookies.
  void collect(std::string_view domain, const Url& url, std::vector<const Kept*>& found)
      WEFT_REQUIRES(mutex) {
    const auto list = domains.find(domain);
    if (list == domains.end()) return;
    count -= std::erase_if(list->second, [](const Kept& each) { return each.end.passed(); });
    for (Kept& each : list->second) {
      if ((each.host_only && domain.size() != url.host.size()) ||
          (each.secure && url.scheme != "https") || !path_matches(path_of(url), each.path)) {
        continue;
      }
      found.push_back(&each);
      each.used = clock;
    }
    if (list->second.empty()) domains.erase(list);
  }

  const CookieJarOptions options;
  mutable Mutex mutex;
  Domains domains WEFT_GUARDED_BY(mutex);
  std::size_t count WEFT_GUARDED_BY(mutex) = 0;
  std::uint64_t clock WEFT_GUARDED_BY(mutex) = 0;
};

CookieJar::CookieJar(CookieJarOptions options) : state_(std::make_unique<State>(options)) {
  if (options.max_cookies == 0 || options.max_per_domain == 0) {
    throw std::invalid_argument(
        "weft::http::CookieJarOptions: max_cookies or max_per_domain = 0; must be at least 1");
  }
}

CookieJar::~CookieJar() = default;

void CookieJar::add(const Url& url, std::string_view set_cookie) {
  auto cookie = parse_set_cookie(set_cookie, static_cast<std::int64_t>(std::time(nullptr)));
  if (!cookie) return;
  const bool is_secure_place = url.scheme == "https";
  if (cookie->secure && !is_secure_place) return;
  const bool names_host = cookie->domain.empty() || cookie->domain == url.host;
  if (!names_host && (!domain_matches(url.host, cookie->domain) ||
                      cookie->domain.find('.') == std::string::npos)) {
    return;
  }
  // Neither a domain with a single label nor an address has a parent domain.
  const bool is_alone = is_address(url.host) || url.host.find('.') == std::string::npos;
  Kept kept;
  kept.name = std::move(cookie->name);
  kept.value = std::move(cookie->value);
  kept.host_only = cookie->domain.empty() || is_alone;
  kept.secure = cookie->secure;
  if (!keeps_prefix(kept.name, kept.secure, cookie->domain.empty() && cookie->path == "/")) return;
  kept.path = cookie->path.empty() ? std::string(default_path(path_of(url))) : cookie->path;
  const std::string& domain = names_host ? url.host : cookie->domain;
  const bool is_over = cookie->lifetime && *cookie->lifetime <= 0;
  if (cookie->lifetime && !is_over) {
    kept.end = Deadline::after(std::chrono::seconds(*cookie->lifetime));
  }
  const detail::Guard guard(state_->mutex);
  if (!is_secure_place && state_->would_hide(domain, kept)) return;
  kept.created = kept.used = ++state_->clock;
  if (is_over) {
    state_->remove(domain, kept);
  } else {
    state_->add(domain, std::move(kept));
  }
}

std::string CookieJar::header_for(const Url& url) {
  std::vector<const Kept*> found;
  const detail::Guard guard(state_->mutex);
  ++state_->clock;
  std::string_view domain = url.host;  // The loop visits each parent domain: "a.b.c", "b.c", "c".
  for (;;) {
    state_->collect(domain, url, found);
    const std::size_t dot = domain.find('.');
    if (dot == std::string_view::npos || is_address(url.host)) break;
    domain.remove_prefix(dot + 1);
  }
  std::sort(found.begin(), found.end(), [](const Kept* left, const Kept* right) {
    if (left->path.size() != right->path.size()) return left->path.size() > right->path.size();
    return left->created < right->created;
  });
  std::string header;
  for (const Kept* each : found) {
    if (!header.empty()) header += "; ";
    if (!each->name.empty()) header += each->name + "=";
    header += each->value;
  }
  return header;
}

std::size_t CookieJar::size() const {
  const detail::Guard guard(state_->mutex);
  return state_->count;
}

void CookieJar::clear() {
  State::Domains dropped;  // Destroyed after `guard` unlocks.
  const detail::Guard guard(state_->mutex);
  dropped.swap(state_->domains);
  state_->count = 0;
}

}  // namespace weft::http
