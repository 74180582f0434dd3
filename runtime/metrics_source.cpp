#include <weft/detail/metrics_source.hpp>

#include <algorithm>
#include <utility>
#include <weft/detail/fork.hpp>
#include <weft/detail/thread_mutex.hpp>

#include "base/lock_until.hpp"

namespace weft::detail {

namespace {

// A thread holds it briefly, over no switch and no fork of another thread. The links of the sources
// are guarded by it, too. Unchecked: the public header does not show this mutex.
constinit ThreadMutex sources_mutex;
constinit MetricsSource* first_source WEFT_GUARDED_BY(sources_mutex) = nullptr;
constinit MetricsSource* last_source WEFT_GUARDED_BY(sources_mutex) = nullptr;
// Counts the forks between the first process and this one.
constinit unsigned source_forks WEFT_GUARDED_BY(sources_mutex) = 0;

void hold_sources_over_forks() {
  // Not analyzed: one function releases what another one takes.
  [[maybe_unused]] static const bool is_held = [] {
    at_fork([]() WEFT_NOT_ANALYZED { sources_mutex.lock(); },
            []() WEFT_NOT_ANALYZED { sources_mutex.unlock(); },
            []() WEFT_NOT_ANALYZED {
              ++source_forks;
              sources_mutex.unlock();
            });
    return true;
  }();
}

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
    : kind_(kind), name_(std::move(name)), add_(std::move(add)), list_(std::move(list)) {
  hold_sources_over_forks();
  const Guard lock(sources_mutex);
  const auto is_taken = [this]() WEFT_NOT_ANALYZED {
    const MetricsSource* each = first_source;
    while (each != nullptr &&
           (each->kind_ != kind_ || each->name_ != name_ || each->number_ != number_)) {
      each = each->next_;
    }
    return each != nullptr;
  };
  while (is_taken()) ++number_;
  forks_ = source_forks;
  previous_ = last_source;
  (previous_ == nullptr ? first_source : previous_->next_) = this;
  last_source = this;
}

MetricsSource::~MetricsSource() {
  const Guard lock(sources_mutex);
  (previous_ == nullptr ? first_source : previous_->next_) = next_;
  (next_ == nullptr ? last_source : next_->previous_) = previous_;
}

metrics::Labels MetricsSource::labels() const {
  metrics::Labels labels{{std::string(kind_), name_}};
  if (number_ > 1) labels.emplace_back("number", std::to_string(number_));
  return labels;
}

void MetricsSource::read_all(metrics::Reading& reading) {
  const Guard lock(sources_mutex);
  for (const MetricsSource* each = first_source; each != nullptr; each = each->next_) {
    if (each->forks_ == source_forks) each->add_(*each, reading);
  }
}

// Not analyzed: see lock_until().
std::vector<OpenRequest> MetricsSource::requests(std::size_t most,
                                                 Deadline patience) WEFT_NOT_ANALYZED {
  std::vector<OpenRequest> requests;
  {
    const std::unique_lock lock = base::lock_until(sources_mutex, patience);
    if (!lock) return requests;
    for (const MetricsSource* each = first_source; each != nullptr; each = each->next_) {
      if (each->list_ && each->forks_ == source_forks) each->list_(*each, requests, most);
    }
  }
  std::ranges::stable_sort(requests, std::greater(), &OpenRequest::age);
  return requests;
}

}  // namespace weft::detail
