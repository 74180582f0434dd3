#include <weft/dns/resolver.hpp>

#include <ares.h>
#include <netdb.h>

#include <array>
#include <span>
#include <system_error>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/io.hpp>

namespace weft::dns {

namespace {

using Ready = io::Ready;

// The answers of c-ares as those of getaddrinfo.
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

// One question, with a channel of c-ares of its own, and so with sockets of its own. A channel is
// for one thread at a time: one for all questions would want a lock held over system calls, or a
// fiber of its own and two wakes a question. And as each question comes from a port that the system
// has chosen anew, strangers have a harder time to guess where the answer is expected.
class Question {
 public:
  Question() = default;
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  // Gives up what is still being asked: c-ares calls on_answer then, and closes its sockets.
  ~Question() {
    if (channel_ != nullptr) ares_destroy(channel_);
    if (found_ != nullptr) ares_freeaddrinfo(found_);
  }

  std::error_code open(const ResolverOptions& options) {
    auto [set, refused] = io::WatchSet::create();
    if (refused) return refused;
    set_ = std::move(set);
    ares_options given{};
    int mask = ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS;
    given.sock_state_cb = &Question::on_socket;
    given.sock_state_cb_data = this;
    // By nsswitch.conf c-ares may put DNS first. It copies the text.
    char files_first[] = "fb";
    given.lookups = files_first;
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
      return error_of(status);
    }
    if (options.servers.empty()) return {};
    return error_of(ares_set_servers_ports_csv(channel_, list_of(options.servers).c_str()));
  }

  // Parks until there is an answer.
  std::error_code ask(const std::string& host, const Until& until) {
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(channel_, host.c_str(), nullptr, &hints, &Question::on_answer, this);
    while (!answered_) {
      if (refused_) return refused_;
      std::array<io::WatchSet::Event, 8> events;
      const auto [count, error] = set_.wait(events, until.but_before(next_attempt()));
      if (error == Errc::timed_out && !until.deadline().passed()) {
        ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      } else if (error) {
        return error;
      }
      for (const auto& event : std::span(events).first(count)) proceed(event);
    }
    return error_of(status_);
  }

  [[nodiscard]] std::vector<net::Address> addresses(std::uint16_t port) const {
    std::vector<net::Address> all;
    for (const auto* node = found_->nodes; node != nullptr; node = node->ai_next) {
      const auto [found, other] = net::Address::from_system(node->ai_addr, node->ai_addrlen);
      if (!other) all.push_back(found.with_port(port));
    }
    return all;
  }

 private:
  // The moment at which c-ares wants to be called, whatever comes.
  [[nodiscard]] Deadline next_attempt() {
    timeval left{};
    if (ares_timeout(channel_, nullptr, &left) == nullptr) return Deadline::never();
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
    ares_process_fd(channel_, if_ready(Ready::read), if_ready(Ready::write));
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
  static void on_answer(void* self, int status, int, ares_addrinfo* found) noexcept {
    auto& question = *static_cast<Question*>(self);
    question.status_ = status;
    question.found_ = found;
    question.answered_ = true;
  }

  io::WatchSet set_;
  ares_channel channel_ = nullptr;
  std::error_code refused_;  // A socket could not be watched.
  bool answered_ = false;
  int status_ = ARES_SUCCESS;
  ares_addrinfo* found_ = nullptr;
};

}  // namespace

Resolver::Resolver(ResolverOptions options) : options_(std::move(options)) {
  // Counted by c-ares, and never taken back: it only makes ready what all channels share.
  static const int ready = ares_library_init(ARES_LIB_INIT_ALL);
  (void)ready;
}

net::Result<std::vector<net::Address>> Resolver::look_up(const std::string& host,
                                                         std::uint16_t port, const Until& until) {
  Question question;
  std::error_code error = question.open(options_);
  if (!error) error = question.ask(host, until);
  if (error) return {.error = error};
  return {.value = question.addresses(port)};
}

}  // namespace weft::dns
