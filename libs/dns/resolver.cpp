#include <weft/detail/first_use.hpp>
#include <weft/dns/resolver.hpp>

#include <ares.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/detail/simulated.hpp>
#include <weft/error.hpp>
#include <weft/io.hpp>
#include <weft/net/datagram_socket.hpp>

namespace weft::dns {

namespace {

using Ready = io::Ready;

// Translates the errors of c-ares to getaddrinfo's.
std::error_code error_of(int status) {
  const auto answer = [](int code) { return std::error_code(code, net::resolver_category()); };
  switch (status) {
    case ARES_SUCCESS:
      return {};
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
      return answer(EAI_NONAME);
    case ARES_ENODATA:
      return answer(EAI_NODATA);
    case ARES_ETIMEOUT:
    case ARES_ECONNREFUSED:
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
      return answer(EAI_AGAIN);
    case ARES_ENOMEM:
      return answer(EAI_MEMORY);
    default:
      return answer(EAI_FAIL);
  }
}

std::string list_of(std::span<const net::Address> servers) {
  std::string text;
  for (const net::Address& server : servers) {
    if (!text.empty()) text.append(",");
    text.append(server.to_string());
  }
  return text;
}

// Owns a channel of c-ares; the destructor closes its sockets.
class Channel {
 public:
  // `lookups` is the list of sources in the notation of c-ares: 'f' for /etc/hosts, 'b' for the
  // name servers. c-ares calls `on_socket` with `data` when the state of a socket changes. `error`
  // reports why the channel could not be made.
  Channel(const ResolverOptions& options, std::string lookups, ares_sock_state_cb on_socket,
          void* data, std::error_code& error) {
    // This may throw, and there is nothing to destroy yet.
    const std::string servers = list_of(options.servers);
    ares_options given{};
    int mask = ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS;
    given.sock_state_cb = on_socket;
    given.sock_state_cb_data = data;
    given.lookups = lookups.data();  // c-ares copies the text.
    if (options.attempt_time.count() > 0) {
      mask |= ARES_OPT_TIMEOUTMS;
      given.timeout = static_cast<int>(options.attempt_time.count());
    }
    if (options.attempts > 0) {
      mask |= ARES_OPT_TRIES;
      given.tries = options.attempts;
    }
    if (const int status = ares_init_options(&channel_, &given, mask); status != ARES_SUCCESS) {
      channel_ = nullptr;
      error = error_of(status);
    } else if (!options.servers.empty()) {
      error = error_of(ares_set_servers_ports_csv(channel_, servers.c_str()));
    }
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // Cancels the pending questions: c-ares reports the cancellation to each answer.
  ~Channel() {
    if (channel_ != nullptr) ares_destroy(channel_);
  }

  [[nodiscard]] ares_channel get() const noexcept { return channel_; }

 private:
  ares_channel channel_ = nullptr;
};

// The answer for one name: the addresses of one kind, or of both.
class DnsAnswer {
 public:
  DnsAnswer() = default;
  DnsAnswer(const DnsAnswer&) = delete;
  DnsAnswer& operator=(const DnsAnswer&) = delete;
  ~DnsAnswer() {
    if (found_ != nullptr) ares_freeaddrinfo(found_);
  }

  // The answer may have arrived when the function returns. The object must outlive the channel.
  void ask_for(const Channel& channel, const std::string& host, int family) {
    ares_addrinfo_hints hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(channel.get(), host.c_str(), nullptr, &hints, &DnsAnswer::come, this);
  }

  // Treats the answer as if it had no addresses.
  void leave_out() noexcept {
    status_ = ARES_ENODATA;
    is_there_ = true;
  }

  [[nodiscard]] bool is_there() const noexcept { return is_there_; }
  [[nodiscard]] bool has_addresses() const noexcept { return found_ != nullptr; }
  // Returns true if there is no such address, and false if there was no answer.
  [[nodiscard]] bool is_none() const noexcept {
    return status_ == ARES_ENOTFOUND || status_ == ARES_ENODATA;
  }
  [[nodiscard]] bool lacks_memory() const noexcept { return status_ == ARES_ENOMEM; }
  [[nodiscard]] std::error_code error() const { return error_of(status_); }
  void append_to(std::vector<net::Address>& all, std::uint16_t port) const {
    for (const auto* node = found_ != nullptr ? found_->nodes : nullptr; node != nullptr;
         node = node->ai_next) {
      const auto [found, other] = net::Address::from_system(node->ai_addr, node->ai_addrlen);
      if (!other) all.push_back(found.with_port(port));
    }
  }

 private:
  // c-ares calls it; no exception may leave it.
  static void come(void* self, int status, int, ares_addrinfo* found) noexcept {
    auto& answer = *static_cast<DnsAnswer*>(self);
    answer.status_ = status;
    answer.found_ = found;
    answer.is_there_ = true;
  }

  bool is_there_ = false;
  int status_ = ARES_SUCCESS;
  ares_addrinfo* found_ = nullptr;
};

// Asks the name servers for the addresses of a name, of both kinds. Each question has its own
// channel, and therefore its own sockets. A channel serves one thread at a time. A shared channel
// would need a lock held over system calls, or a fiber and two wakes for each question. Each
// question also uses a new port chosen by the system, which makes forged answers harder.
class Question {
 public:
  // `refused` is set if the question cannot be asked.
  Question(const ResolverOptions& options, std::error_code& refused)
      : delay_(options.resolution_delay), channel_(options, "b", &on_socket, this, refused) {
    if (refused) return;
    auto [set, error] = io::WatchSet::create();
    set_ = std::move(set);
    refused = error;
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() = default;

  // Parks until both answers have arrived, or until the delay has passed after the first answer
  // with addresses.
  std::error_code ask(const std::string& host, const Until& until) {
    v6_.ask_for(channel_, host, AF_INET6);
    v4_.ask_for(channel_, host, AF_INET);
    return wait(until);
  }
  // Asks for addresses of one kind. Parks until the answer has arrived.
  std::error_code ask_for(bool v6, const std::string& host, const Until& until) {
    (v6 ? v6_ : v4_).ask_for(channel_, host, v6 ? AF_INET6 : AF_INET);
    (v6 ? v4_ : v6_).leave_out();
    return wait(until);
  }

  // IPv6 comes first if the system has a route to it, as in RFC 6724; within each kind the order of
  // c-ares is kept.
  [[nodiscard]] std::vector<net::Address> addresses(std::uint16_t port) const {
    std::vector<net::Address> all;
    v6_.append_to(all, port);
    const std::size_t v6_size = all.size();
    v4_.append_to(all, port);
    // Connecting a UDP socket only looks up the route.
    if (v6_size != 0 && v6_size != all.size() && net::UdpSocket::connected(all.front()).error) {
      std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(v6_size), all.end());
    }
    return all;
  }

 private:
  std::error_code wait(const Until& until) {
    Deadline enough = Deadline::never();
    for (bool waits_for_other = false; !v6_.is_there() || !v4_.is_there();) {
      if (refused_) return refused_;
      if (!waits_for_other && has_addresses()) {
        waits_for_other = true;
        enough = Deadline::after(delay_);
      }
      std::array<io::WatchSet::Event, 8> events;
      const auto [count, error] =
          set_.wait(events, until.but_before(next_attempt()).but_before(enough));
      if (error == Errc::timed_out && !until.deadline().passed()) {
        if (enough.passed()) break;
        ares_process_fd(channel_.get(), ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      } else if (error) {
        return error;
      }
      for (const auto& event : std::span(events).first(count)) proceed(event);
    }
    if (has_addresses()) return {};
    // A missing answer outweighs a negative answer: a later attempt may find an address.
    return (v4_.is_none() ? v6_ : v4_).error();
  }

  [[nodiscard]] bool has_addresses() const noexcept {
    return v6_.has_addresses() || v4_.has_addresses();
  }
  // The time at which c-ares must be called even if no socket is ready.
  [[nodiscard]] Deadline next_attempt() {
    timeval left{};
    if (ares_timeout(channel_.get(), nullptr, &left) == nullptr) return Deadline::never();
    return Deadline::after(std::chrono::seconds(left.tv_sec) +
                           std::chrono::microseconds(left.tv_usec));
  }

  // If another event has closed a socket, c-ares does not recognize it and does nothing.
  void proceed(const io::WatchSet::Event& event) {
    const auto socket = static_cast<ares_socket_t>(event.key);
    const auto bits = static_cast<unsigned>(event.ready);
    const auto if_ready = [=](Ready what) {
      return (bits & static_cast<unsigned>(what)) != 0 ? socket : ARES_SOCKET_BAD;
    };
    ares_process_fd(channel_.get(), if_ready(Ready::read), if_ready(Ready::write));
  }

  // c-ares calls it; no exception may leave it.
  static void on_socket(void* self, ares_socket_t socket, int read, int write) noexcept {
    auto& question = *static_cast<Question*>(self);
    if (read == 0 && write == 0) {
      (void)question.set_.remove(socket);
      return;
    }
    const auto what = static_cast<Ready>((read != 0 ? 1 : 0) | (write != 0 ? 2 : 0));
    const auto key = static_cast<std::uint64_t>(socket);
    std::error_code error = question.set_.change(socket, what, key);
    if (error == std::errc::no_such_file_or_directory) error = question.set_.add(socket, what, key);
    if (error) question.refused_ = error;
  }

  const std::chrono::nanoseconds delay_;
  io::WatchSet set_;
  std::error_code refused_;  // Set if a socket could not be watched.
  DnsAnswer v6_;
  DnsAnswer v4_;
  Channel channel_;  // It is destroyed first, and then reports to the other members.
};

// Looks in /etc/hosts, which has priority whatever nsswitch.conf specifies; returns nothing if the
// name is not there.
net::Result<std::vector<net::Address>> look_up_in_hosts(const ResolverOptions& options,
                                                        const std::string& host,
                                                        std::uint16_t port) {
  net::Result<std::vector<net::Address>> result;
  DnsAnswer answer;
  const Channel hosts(options, "f", nullptr, nullptr, result.error);
  if (result.error) return result;
  answer.ask_for(hosts, host, AF_UNSPEC);
  if (answer.lacks_memory()) return {.error = answer.error()};
  answer.append_to(result.value, port);
  return result;
}

// c-ares counts these calls; no call is undone, as they only prepare data that all channels share.
int prepare_library() noexcept { return ares_library_init(ARES_LIB_INIT_ALL); }

}  // namespace

Resolver::Resolver(ResolverOptions options) : options_(std::move(options)) {
  (void)detail::computed_once<&prepare_library>();
}

net::Result<std::vector<net::Address>> Resolver::look_up(const std::string& host,
                                                         std::uint16_t port, const Until& until) {
  // No name server of the system has the hosts of a simulation.
  if (detail::is_simulated()) return net::resolve(host, port, until);
  auto result = look_up_in_hosts(options_, host, port);
  // A name that is found there has no further addresses.
  if (result.error || !result.value.empty()) return result;
  Question question(options_, result.error);
  if (!result.error) result.error = question.ask(host, until);
  if (!result.error) result.value = question.addresses(port);
  return result;
}

net::Result<std::vector<net::Address>> Resolver::look_up_rest(const std::string& host,
                                                              std::span<const net::Address> found,
                                                              const Until& until) {
  if (detail::is_simulated()) return {};
  const std::uint16_t port = found.front().port();
  auto result = look_up_in_hosts(options_, host, port);
  if (result.error || !result.value.empty()) return {.error = result.error};
  Question question(options_, result.error);
  if (!result.error) result.error = question.ask_for(!found.front().is_v6(), host, until);
  if (!result.error) result.value = question.addresses(port);
  return result;
}

}  // namespace weft::dns
