// Tests unmodified blocking client libraries on one worker. Their server answers only after the
// requests of all clients have arrived, so a client that blocked the worker would prevent the other
// requests.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>
#include <weft/wait_group.hpp>

#include "tests/posix/both_ways.hpp"
#include "tests/support/skip.hpp"
#ifdef WEFT_TEST_HIREDIS
#include <hiredis/hiredis.h>
#endif
#ifdef WEFT_TEST_CURL
#include <curl/curl.h>
#endif

namespace {

using weft::posix::Scope;
using weft::test::has_hooks;

TEST_SUITE_BEGIN("posix/clients");

constexpr int kClients = 20;

// Runs the clients' server on a plain thread.
class Server {
 public:
  // A request ends with `end`.
  Server(std::string end, std::string answer) : end_(std::move(end)), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    CHECK(::bind(listener_, generic, size) == 0);
    CHECK(::listen(listener_, kClients) == 0);
    CHECK(::getsockname(listener_, generic, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    thread_.join();
    ::close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  void serve() {
    std::vector<int> clients;
    for (int i = 0; i < kClients; ++i) clients.push_back(::accept(listener_, nullptr, nullptr));
    for (const int client : clients) read_question(client);
    for (const int client : clients) {
      CHECK(::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(answer_.size()));
    }
    for (const int client : clients) ::close(client);
  }
  void read_question(int client) const {
    std::string question;
    std::array<char, 512> buffer{};
    while (!question.ends_with(end_)) {
      const ssize_t got = ::recv(client, buffer.data(), buffer.size(), 0);
      CHECK(got > 0);
      if (got <= 0) return;
      question.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  const std::string end_;
  const std::string answer_;
  const int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  int port_ = 0;
  std::thread thread_;
};

FIBER_TEST_CASE_WITH("many fibers of one worker call a server with hiredis at the same time",
                     {.workers = {1}}) {
#ifdef WEFT_TEST_HIREDIS
  if (!has_hooks()) return;
  const Server server("PING\r\n", "+PONG\r\n");
  weft::WaitGroup group;
  for (int i = 0; i < kClients; ++i) {
    group.go([&] {
      const Scope scope;
      redisContext* context = ::redisConnect("127.0.0.1", server.port());
      CHECK(context->err == 0);
      auto* reply = static_cast<redisReply*>(::redisCommand(context, "PING"));
      CHECK(reply != nullptr);
      if (reply != nullptr) {
        CHECK(std::string(reply->str, reply->len) == "PONG");
        ::freeReplyObject(reply);
      }
      ::redisFree(context);
    });
  }
  group.wait();
#else
  weft::test::skip("hiredis is missing; on Debian it comes with libhiredis-dev");
#endif
}

FIBER_TEST_CASE_WITH(
    "many fibers of one worker call a server with libcurl's easy interface at the same time",
    {.workers = {1}, .options = {.stack_size = 256 << 10}}) {
#ifdef WEFT_TEST_CURL
  if (!has_hooks()) return;
  CHECK(::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
  {
    const Server server("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    weft::WaitGroup group;
    for (int i = 0; i < kClients; ++i) {
      group.go([&] {
        const Scope scope;
        CURL* easy = ::curl_easy_init();
        const std::string url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
        std::string body;
        using Write = std::size_t (*)(const char*, std::size_t, std::size_t, void*);
        const Write write = [](const char* data, std::size_t size, std::size_t count, void* text) {
          static_cast<std::string*>(text)->append(data, size * count);
          return size * count;
        };
        ::curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
        ::curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        ::curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
        ::curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
        ::curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
        const CURLcode result = ::curl_easy_perform(easy);
        CHECK(result == CURLE_OK);
        CHECK(body == "ok");
        ::curl_easy_cleanup(easy);
      });
    }
    group.wait();
  }
  ::curl_global_cleanup();
#else
  weft::test::skip("libcurl is missing; on Debian it comes with libcurl4-openssl-dev");
#endif
}

TEST_SUITE_END();

}  // namespace
