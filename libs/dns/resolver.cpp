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

// A channel of c-ares, whose destructor closes its sockets.
class Channel {
 public:
  // `lookups`: where it looks, as c-ares has it: 'f' /etc/hosts, 'b' the name servers. c-ares calls
  // `on_socket` with `data` about its sockets. `error` reports why there is no channel.
  Channel(const ResolverOptions& options, std::string lookups, ares_sock_state_cb on_socket,
          void* data, std::error_code& error) {
    const std::string servers = list_of(options.servers);  // Before there is something to destroy.
    ares_options given{};
    int mask = ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS;
    given.sock_state_cb = on_socket;
    given.sock_state_cb_data = data;
    given.lookups = lookups.data();  // It copies the text.
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
  // Gives up what is still being asked: c-ares tells each answer so.
  ~Channel() {
    if (channel_ != nullptr) ares_destroy(channel_);
  }

  [[nodiscard]] ares_channel get() const noexcept { return channel_; }

 private:
  ares_channel channel_ = nullptr;
};

// The answer about a name: its addresses of one kind, or of both.
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    if (found_ != nullptr) ares_freeaddrinfo(found_);
  }

  // It may be there when this returns. It must outlive the channel.
  void ask_for(const Channel& channel, const std::string& host, int family) {
    ares_addrinfo_hints hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(channel.get(), host.c_str(), nullptr, &hints, &Answer::come, this);
  }

  // As if there were none.
  void leave_out() noexcept {
    status_ = ARES_ENODATA;
    is_there_ = true;
  }

  [[nodiscard]] bool is_there() const noexcept { return is_there_; }
  [[nodiscard]] bool has_addresses() const noexcept { return found_ != nullptr; }
  // That there is no such address, other than that there was no answer.
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
  // Called by c-ares, which knows no exceptions.
  static void come(void* self, int status, int, ares_addrinfo* found) noexcept {
    auto& answer = *static_cast<Answer*>(self);
    answer.status_ = status;
    answer.found_ = found;
    answer.is_there_ = true;
  }

  bool is_there_ = false;
  int status_ = ARES_SUCCESS;
  ares_addrinfo* found_ = nullptr;
};

// The name servers' addresses of a name, of both kinds. Each question has a channel of its own, and
// so sockets of its own. A channel is for one thread at a time: one for all questions would want a
// lock held over system calls, or a fiber of its own and two wakes a question. And as each question
// comes from a port that the system has chosen anew, strangers have a harder time to guess where
// the answer is expected.
class Question {
 public:
  // `refused` tells if it cannot be asked.
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

  // Parks until there are both answers, or one has had addresses for the delay.
  std::error_code ask(const std::string& host, const Until& until) {
    v6_.ask_for(channel_, host, AF_INET6);
    v4_.ask_for(channel_, host, AF_INET);
    return wait(until);
  }
  // For addresses of one kind. Parks until there is an answer.
  std::error_code ask_for(bool v6, const std::string& host, const Until& until) {
    (v6 ? v6_ : v4_).ask_for(channel_, host, v6 ? AF_INET6 : AF_INET);
    (v6 ? v4_ : v6_).leave_out();
    return wait(until);
  }

  // IPv6 comes first where the system has a way there, as in RFC 6724; each kind is c-ares' order.
  [[nodiscard]] std::vector<net::Address> addresses(std::uint16_t port) const {
    std::vector<net::Address> all;
    v6_.append_to(all, port);
    const std::size_t v6_size = all.size();
    v4_.append_to(all, port);
    // Connecting a UDP socket only looks for the way.
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
    // No answer outweighs that there is no address: another time there may be one.
    return (v4_.is_none() ? v6_ : v4_).error();
  }

  [[nodiscard]] bool has_addresses() const noexcept {
    return v6_.has_addresses() || v4_.has_addresses();
  }
  // The moment at which c-ares wants to be called, whatever comes.
  [[nodiscard]] Deadline next_attempt() {
    timeval left{};
    if (ares_timeout(channel_.get(), nullptr, &left) == nullptr) return Deadline::never();
    return Deadline::after(std::chrono::seconds(left.tv_sec) +
                           std::chrono::microseconds(left.tv_usec));
  }

  // A socket that another event has closed is not c-ares' any more, which then does nothing.
  void proceed(const io::WatchSet::Event& event) {
    const auto socket = static_cast<ares_socket_t>(event.key);
    const auto bits = static_cast<unsigned>(event.ready);
    const auto if_ready = [=](Ready what) {
      return (bits & static_cast<unsigned>(what)) != 0 ? socket : ARES_SOCKET_BAD;
    };
    ares_process_fd(channel_.get(), if_ready(Ready::read), if_ready(Ready::write));
  }

  // Called by c-ares, which knows no exceptions.
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
  std::error_code refused_;  // A socket could not be watched.
  Answer v6_;
  Answer v4_;
  Channel channel_;  // Ends first: it tells the others.
};

// From /etc/hosts, which comes first, whatever nsswitch.conf says; empty if it is not there.
net::Result<std::vector<net::Address>> look_up_in_hosts(const ResolverOptions& options,
                                                        const std::string& host,
                                                        std::uint16_t port) {
  net::Result<std::vector<net::Address>> result;
  Answer answer;
  const Channel hosts(options, "f", nullptr, nullptr, result.error);
  if (result.error) return result;
  answer.ask_for(hosts, host, AF_UNSPEC);
  if (answer.lacks_memory()) return {.error = answer.error()};
  answer.append_to(result.value, port);
  return result;
}

}  // namespace

Resolver::Resolver(ResolverOptions options) : options_(std::move(options)) {
  // Counted by c-ares, and never taken back: it only makes ready what all channels share.
  static const int ready = ares_library_init(ARES_LIB_INIT_ALL);
  (void)ready;
}

net::Result<std::vector<net::Address>> Resolver::look_up(const std::string& host,
                                                         std::uint16_t port, const Until& until) {
  auto result = look_up_in_hosts(options_, host, port);
  // A name that is there has no other addresses.
  if (result.error || !result.value.empty()) return result;
  Question question(options_, result.error);
  if (!result.error) result.error = question.ask(host, until);
  if (!result.error) result.value = question.addresses(port);
  return result;
}

net::Result<std::vector<net::Address>> Resolver::look_up_rest(const std::string& host,
                                                              std::span<const net::Address> found,
                                                              const Until& until) {
  const std::uint16_t port = found.front().port();
  auto result = look_up_in_hosts(options_, host, port);
  if (result.error || !result.value.empty()) return {.error = result.error};
  Question question(options_, result.error);
  if (!result.error) result.error = question.ask_for(!found.front().is_v6(), host, until);
  if (!result.error) result.value = question.addresses(port);
  return result;
}

}  // namespace weft::dns
