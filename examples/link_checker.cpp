// Follows the links of a site, and reports broken links with the pages that have them. It reads
// pages of the site for further links, and requests only the head of other sites' pages.
//
//   link_checker --fibers 20 --per-second 50 http://127.0.0.1:8080/
//
// Exit status: 0, 1 if a link is broken, 2 for bad arguments.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/context.hpp>
#include <weft/error.hpp>
#include <weft/http/client.hpp>
#include <weft/http/error.hpp>
#include <weft/http/url.hpp>
#include <weft/mutex.hpp>
#include <weft/retry.hpp>
#include <weft/runtime.hpp>
#include <weft/task_group.hpp>
#include <weft/token_bucket.hpp>

#include "command_line.hpp"

namespace {

using namespace std::chrono_literals;
using weft::http::Reply;
using weft::http::Url;

struct Options {
  std::string site;
  std::size_t fibers = 20;
  std::size_t per_second = 1000;
  double seconds = 10;  // The time limit for each page.
};

// Returns the values of href and src in a page.
std::vector<std::string> links_in(std::string_view page) {
  std::vector<std::string> links;
  for (const std::string_view name : {"href=", "src="}) {
    for (std::size_t at = 0; (at = page.find(name, at)) != std::string_view::npos;) {
      at += name.size();
      if (at >= page.size() || (page[at] != '"' && page[at] != '\'')) continue;
      const std::size_t end = page.find(page[at], at + 1);
      if (end == std::string_view::npos) break;
      links.emplace_back(page.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  return links;
}

class Checker {
 public:
  Checker(const Options& options, Url site)
      : options_(options),
        site_(std::move(site)),
        rate_({.tokens = options.per_second, .burst = 10}),
        group_({.max_running = options.fibers}) {}

  // Returns the number of broken links.
  std::size_t run() {
    visit(site_, site_);
    group_.join();
    for (const auto& [url, page] : pages_) {
      if (page.problem.empty()) continue;
      std::printf("%s: %s\n", url.c_str(), page.problem.c_str());
      for (const std::string& from : page.linked_from) std::printf("  from %s\n", from.c_str());
    }
    const auto broken = static_cast<std::size_t>(std::ranges::count_if(
        pages_, [](const auto& page) { return !page.second.problem.empty(); }));
    std::printf("%zu links, %zu broken\n", pages_.size(), broken);
    return broken;
  }

 private:
  struct Page {
    std::string problem;  // Empty if the page has none.
    std::set<std::string> linked_from;
  };

  // Starts a task for a page that has not been seen. Tasks also call it: the group queues tasks
  // beyond its limit.
  void visit(const Url& url, const Url& from) {
    const std::string name = url.to_string();
    {
      const std::lock_guard lock(mutex_);
      const auto [page, is_new] = pages_.try_emplace(name);
      page->second.linked_from.insert(from.to_string());
      if (!is_new) return;
    }
    group_.spawn([this, url] { check(url); });
  }

  void check(const Url& url) {
    const bool is_own = url.host == site_.host && url.port == site_.port;
    std::string problem;
    try {
      problem = weft::with_timeout(std::chrono::duration<double>(options_.seconds),
                                   [&] { return is_own ? read(url) : look_at(url); });
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (problem.empty()) return;
    const std::lock_guard lock(mutex_);
    pages_[url.to_string()].problem = std::move(problem);
  }

  // Requests the page again if the server is busy or cannot be reached.
  weft::Result<Reply> ask(const char* method, const Url& url) {
    const weft::Until limit = weft::this_fiber::until();
    return weft::retry_until({.attempts = 3, .first_delay = 20ms}, limit, [&] {
      weft::Result<Reply> reply{.error = weft::Errc::timed_out};
      if (rate_.take_until(limit)) reply = client_.send({method, url.to_string()});
      const bool is_busy = reply.error || reply.value.status() == 503;
      return weft::Attempt<weft::Result<Reply>>{std::move(reply), is_busy};
    });
  }

  // This function and read() return the problem of a page, or an empty text.
  std::string look_at(const Url& url) {
    const auto [reply, error] = ask("HEAD", url);
    if (error) return error.message();
    return reply.status() < 400 ? "" : "status " + std::to_string(reply.status());
  }

  std::string read(const Url& url) {
    auto [reply, error] = ask("GET", url);
    if (error) return error.message();
    if (reply.status() >= 400) return "status " + std::to_string(reply.status());
    if (!reply.header("Content-Type").value_or("").starts_with("text/html")) return {};
    const auto [page, unread] = reply.read_all();
    if (unread) return unread.message();
    for (std::string link : links_in(page)) {
      link.resize(std::min(link.find('#'), link.size()));
      if (link.empty()) continue;
      // Links are relative to the URL after redirects.
      const auto [target, malformed] = reply.url().resolve(link);
      if (malformed == weft::http::Errc::unsupported) continue;  // mailto: and the like.
      if (malformed) return "a malformed link, " + link;
      visit(target, url);
    }
    return {};
  }

  const Options& options_;
  const Url site_;
  weft::TokenBucket rate_;
  weft::http::Client client_;
  weft::Mutex mutex_;
  std::map<std::string, Page> pages_;
  weft::TaskGroup group_;  // Last, because its tasks use all other members.
};

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("link_checker", "Finds the broken links of a site.");
  Options options;
  line.add("site", options.site, "where to begin: http://127.0.0.1:8080/");
  line.add("--fibers", options.fibers, 1, 100'000, "requests at once");
  line.add("--per-second", options.per_second, 1, 1'000'000, "requests in a second, at most");
  line.add("--seconds", options.seconds, "for each page");
  line.require("site");
  return line.run(argc, argv, [&] {
    const auto [site, malformed] = Url::parse(options.site);
    if (malformed) throw std::invalid_argument("site: " + malformed.message());
    return weft::run([&, &begin = site] { return Checker(options, begin).run() == 0 ? 0 : 1; });
  });
}
