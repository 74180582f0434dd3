#include "libs/http/server/route_index.hpp"

#include <algorithm>
#include <vector>
#include <weft/detail/fork.hpp>
#include <weft/detail/thread_mutex.hpp>

namespace weft::http {

namespace {

constinit detail::ThreadMutex titles_mutex;

const detail::HeldOverForks<titles_mutex> hold_titles_over_forks;
// Never destroyed, because a static router may use the titles at exit.
constinit std::vector<std::string>* all_titles WEFT_GUARDED_BY(titles_mutex) = nullptr;

std::vector<std::string>& route_titles() WEFT_REQUIRES(titles_mutex) {
  if (all_titles == nullptr) all_titles = new std::vector<std::string>{"none", "other"};
  return *all_titles;
}

}  // namespace

RouteIndex index_of_route(std::string_view title) {
  const detail::Guard lock(titles_mutex);
  std::vector<std::string>& titles = route_titles();
  const auto found = std::find(titles.begin() + 2, titles.end(), title);
  if (found != titles.end()) return static_cast<RouteIndex>(found - titles.begin());
  if (titles.size() == kMostRoutes) return kOtherRoutes;
  titles.emplace_back(title);
  return static_cast<RouteIndex>(titles.size() - 1);
}

std::string title_of_route(RouteIndex index) {
  const detail::Guard lock(titles_mutex);
  return route_titles()[index];
}

}  // namespace weft::http
