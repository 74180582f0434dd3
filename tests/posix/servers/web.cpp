// Clients of the web server `site`: by HTTP, by TLS, and through an SSH connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "tests/posix/servers/client.hpp"
#ifdef WEFT_TEST_CURL
#include <curl/curl.h>
#endif
#ifdef WEFT_TEST_OPENSSL
#include <openssl/ssl.h>
#endif
#ifdef WEFT_TEST_HTTPLIB
#include <httplib.h>
#endif
#ifdef WEFT_TEST_LIBSSH2
#include <libssh2.h>
#endif

namespace weft::test {

namespace {

// The answer of `site` at "/" and, after 0.1 s, at "/slow".
constexpr std::string_view kAnswer = "answered";

#if defined(WEFT_TEST_OPENSSL) || defined(WEFT_TEST_LIBSSH2)
// Sends a handwritten request; `write` and `read` are like the system's.
template <class Write, class Read>
bool ask_by_hand(const std::string& path, Write write, Read read) {
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: site\r\n\r\n";
  for (std::size_t sent = 0; sent < request.size();) {
    const auto count = write(request.data() + sent, request.size() - sent);
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  std::string answer;
  std::array<char, 4096> buffer{};
  while (!answer.ends_with(kAnswer)) {
    const auto count = read(buffer.data(), buffer.size());
    if (count <= 0) return false;
    answer.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return answer.starts_with("HTTP/1.1 200 ");
}
#endif

}  // namespace

#ifdef WEFT_TEST_CURL
namespace {

class Curl final : public Client {
 public:
  explicit Curl(std::string port) : url_("http://127.0.0.1:" + std::move(port)) {
    using Write = std::size_t (*)(const char*, std::size_t, std::size_t, void*);
    const Write write = [](const char* data, std::size_t size, std::size_t count, void* text) {
      static_cast<std::string*>(text)->append(data, size * count);
      return size * count;
    };
    ::curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(easy_, CURLOPT_NOPROXY, "*");
    ::curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, write);
    ::curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &body_);
  }
  ~Curl() override { ::curl_easy_cleanup(easy_); }

  bool call_quickly() override { return ask("/"); }
  bool call_slowly() override { return ask("/slow"); }

 private:
  bool ask(const char* path) {
    body_.clear();
    ::curl_easy_setopt(easy_, CURLOPT_URL, (url_ + path).c_str());
    return ::curl_easy_perform(easy_) == CURLE_OK && body_ == kAnswer;
  }

  const std::string url_;
  CURL* const easy_ = ::curl_easy_init();
  std::string body_;
};

}  // namespace

std::unique_ptr<Client> connect_curl(const std::string& where) {
  static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return nullptr;
  auto client = std::make_unique<Curl>(where);
  if (!client->call_quickly()) return nullptr;
  return client;
}
#endif

#ifdef WEFT_TEST_OPENSSL
namespace {

class Openssl final : public Client {
 public:
  explicit Openssl(const std::string& port) {
    static SSL_CTX* const context = ::SSL_CTX_new(::TLS_client_method());
    stream_ = ::BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(stream_, ("127.0.0.1:" + port).c_str());
  }
  ~Openssl() override { ::BIO_free_all(stream_); }

  [[nodiscard]] bool connect() { return BIO_do_connect(stream_) == 1; }
  bool call_quickly() override { return ask("/"); }
  bool call_slowly() override { return ask("/slow"); }

 private:
  bool ask(const char* path) {
    return ask_by_hand(
        path,
        [this](const char* data, std::size_t size) {
          return ::BIO_write(stream_, data, static_cast<int>(size));
        },
        [this](char* data, std::size_t size) {
          return ::BIO_read(stream_, data, static_cast<int>(size));
        });
  }

  BIO* stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Client> connect_openssl(const std::string& where) {
  auto client = std::make_unique<Openssl>(where);
  if (!client->connect()) return nullptr;
  return client;
}
#endif

#ifdef WEFT_TEST_HTTPLIB
namespace {

class Httplib final : public Client {
 public:
  explicit Httplib(const std::string& port) : client_("127.0.0.1", std::stoi(port)) {
    client_.set_keep_alive(true);
  }

  bool call_quickly() override { return ask("/"); }
  bool call_slowly() override { return ask("/slow"); }

 private:
  bool ask(const char* path) {
    const httplib::Result result = client_.Get(path);
    return result && result->status == 200 && result->body == kAnswer;
  }

  httplib::Client client_;
};

}  // namespace

std::unique_ptr<Client> connect_httplib(const std::string& where) {
  auto client = std::make_unique<Httplib>(where);
  if (!client->call_quickly()) return nullptr;
  return client;
}
#endif

#ifdef WEFT_TEST_LIBSSH2
namespace {

// Is a connection to the site through a connection to sshd.
class Libssh2 final : public Client {
 public:
  Libssh2() = default;
  ~Libssh2() override {
    if (channel_ != nullptr) ::libssh2_channel_free(channel_);
    if (session_ != nullptr) ::libssh2_session_free(session_);
    if (socket_ >= 0) ::close(socket_);
  }

  // `where` is "PORT USER KEY SITE": sshd's port, the user and the private key's file, the site's
  // port.
  [[nodiscard]] bool connect(const std::string& where) {
    std::array<std::string, 4> words;
    std::size_t begin = 0;
    for (std::string& word : words) {
      const std::size_t end = std::min(where.find(' ', begin), where.size());
      word = where.substr(begin, end - begin);
      begin = end + 1;
      if (word.empty()) return false;
    }
    const auto& [port, user, key, site] = words;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return false;
    session_ = ::libssh2_session_init();
    if (session_ == nullptr || ::libssh2_session_handshake(session_, socket_) != 0) return false;
    if (::libssh2_userauth_publickey_fromfile(session_, user.c_str(), (key + ".pub").c_str(),
                                              key.c_str(), nullptr) != 0)
      return false;
    channel_ = ::libssh2_channel_direct_tcpip(session_, "127.0.0.1", std::stoi(site));
    return channel_ != nullptr;
  }
  bool call_quickly() override { return ask("/"); }
  bool call_slowly() override { return ask("/slow"); }

 private:
  bool ask(const char* path) {
    return ask_by_hand(
        path,
        [this](const char* data, std::size_t size) {
          return ::libssh2_channel_write(channel_, data, size);
        },
        [this](char* data, std::size_t size) {
          return ::libssh2_channel_read(channel_, data, size);
        });
  }

  int socket_ = -1;
  LIBSSH2_SESSION* session_ = nullptr;
  LIBSSH2_CHANNEL* channel_ = nullptr;
};

}  // namespace

std::unique_ptr<Client> connect_libssh2(const std::string& where) {
  static const int failed = ::libssh2_init(0);
  auto client = std::make_unique<Libssh2>();
  if (failed != 0 || !client->connect(where)) return nullptr;
  return client;
}
#endif

}  // namespace weft::test
