// Many fibers fetch pages by libcurl, over the few connections that libcurl keeps.
//
//   curl_fetch http://127.0.0.1:8080/ 100
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <weft/runtime.hpp>
#include <weft/wait_group.hpp>

#include "curl_fetcher.hpp"

namespace {

int fetch(const std::string& url, int times) {
  Fetcher fetcher;
  weft::WaitGroup all;
  std::atomic<int> good{0};
  std::atomic<std::size_t> bytes{0};
  for (int i = 0; i < times; ++i) {
    all.go([&] {
      const auto page = fetcher.get(url);
      if (page.code == CURLE_OK) ++good, bytes += page.text.size();
    });
  }
  all.wait();
  std::printf("%d of %d pages, %zu bytes\n", good.load(), times, bytes.load());
  return good == times ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "curl_fetch URL [TIMES]\n"), 2;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  int status = 1;
  try {
    status = weft::run([&] { return fetch(argv[1], argc > 2 ? std::atoi(argv[2]) : 1); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "curl_fetch: %s\n", error.what());
  }
  curl_global_cleanup();
  return status;
}
