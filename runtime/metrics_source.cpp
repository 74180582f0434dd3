#include <weft/detail/metrics_source.hpp>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <weft/detail/fork.hpp>
#include <weft/detail/simulated_process.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/lock_until.hpp"

namespace weft::detail {

namespace {

// A thread holds this mutex briefly: not across a switch, nor across another thread's fork. It
// guards the links of the sources, too. Not annotated, because the public header does not show this
// mutex.
constinit ThreadMutex sources_mutex;
constinit MetricsSource* first_source WEFT_GUARDED_BY(sources_mutex) = nullptr;
constinit MetricsSource* last_source WEFT_GUARDED_BY(sources_mutex) = nullptr;

// The numbers in use for each kind and name, in each process of a simulation. Never destroyed,
// because a static source may end later.
using TakenNumbers =
    std::set<std::tuple<std::uint64_t, std::string_view, std::string_view, unsigned>>;
constinit TakenNumbers* all_taken WEFT_GUARDED_BY(sources_mutex) = nullptr;

TakenNumbers& taken_numbers() WEFT_REQUIRES(sources_mutex) {
  if (all_taken == nullptr) all_taken = new TakenNumbers;
  return *all_taken;
}

const HeldOverForks<sources_mutex, ForkHandlers::Locks::outer> hold_sources_over_forks;

}  // namespace

metrics::Family& family_of(metrics::Reading& reading, std::string_view name, std::string_view type,
                           std::string_view help) {
  const auto found = std::ranges::find(reading.families, name, &metrics::Family::name);
  if (found != reading.families.end()) return *found;
  return reading.families.emplace_back(metrics::Family{.name = std::string(name),
                                                       .type = std::string(type),
                                                       .help = std::string(help),
                                                       .samples = {}});
}

MetricsSource::MetricsSource(std::string_view kind, std::string name, Add add, List list)
    : kind_(kind),
      name_(std::move(name)),
      add_(std::move(add)),
      list_(std::move(list)),
      forks_(forks()),
      process_(simulated_process()) {
  list_requests_with(&MetricsSource::requests);
  const Guard lock(sources_mutex);
  TakenNumbers& taken = taken_numbers();
  while (!taken.emplace(process_, kind_, name_, number_).second) ++number_;
  previous_ = last_source;
  (previous_ == nullptr ? first_source : previous_->next_) = this;
  last_source = this;
}

MetricsSource::~MetricsSource() {
  const Guard lock(sources_mutex);
  taken_numbers().erase({process_, kind_, name_, number_});
  (previous_ == nullptr ? first_source : previous_->next_) = next_;
  (next_ == nullptr ? last_source : next_->previous_) = previous_;
}

metrics::Labels MetricsSource::labels() const {
  metrics::Labels labels{{std::string(kind_), name_}};
  if (number_ > 1) labels.emplace_back("number", std::to_string(number_));
  return labels;
}

void MetricsSource::read_all(metrics::Reading& reading) {
  const std::uint64_t process = simulated_process();
  const Guard lock(sources_mutex);
  for (const MetricsSource* each = first_source; each != nullptr; each = each->next_) {
    if (each->forks_ == forks() && each->process_ == process) each->add_(*each, reading);
  }
}

// Not analyzed: see lock_until().
std::vector<OpenRequest> MetricsSource::requests(std::size_t most,
                                                 Deadline patience) WEFT_NOT_ANALYZED {
  std::vector<OpenRequest> requests;
  const std::uint64_t simulation = simulated_process() >> 32;
  {
    const std::unique_lock lock = base::lock_until(sources_mutex, patience);
    if (!lock) return requests;
    for (const MetricsSource* each = first_source; each != nullptr; each = each->next_) {
      if (!each->list_ || each->forks_ != forks()) continue;
      if (each->process_ >> 32 == simulation) each->list_(*each, requests, most);
    }
  }
  std::ranges::stable_sort(requests, std::greater(), &OpenRequest::age);
  return requests;
}

}  // namespace weft::detail
