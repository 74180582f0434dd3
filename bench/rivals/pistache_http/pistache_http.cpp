// Pistache's side of W9_http in bench/compare_net: answers each request with 13 bytes.
//
//   pistache ADDRESS:PORT THREADS
#include <pistache/endpoint.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

class Hello : public Pistache::Http::Handler {
 public:
  HTTP_PROTOTYPE(Hello)

  void onRequest(const Pistache::Http::Request&, Pistache::Http::ResponseWriter response) override {
    response.send(Pistache::Http::Code::Ok, "Hello, World!", MIME(Text, Plain));
  }
};

}  // namespace

int main(int, char** argv) {
  // SIGTERM ends the process directly, because its default action would not stop the threads.
  std::signal(SIGTERM, [](int) { std::_Exit(EXIT_SUCCESS); });
  Pistache::Http::Endpoint server{Pistache::Address(argv[1])};
  server.init(Pistache::Http::Endpoint::options()
                  .threads(std::atoi(argv[2]))
                  .backlog(4096)
                  .flags(Pistache::Tcp::Options::ReuseAddr | Pistache::Tcp::Options::NoDelay));
  server.setHandler(Pistache::Http::make_handler<Hello>());
  server.serveThreaded();
  std::printf("listening on 127.0.0.1:%s\n", server.getPort().toString().c_str());
  std::fflush(stdout);
  for (;;) ::pause();
}
