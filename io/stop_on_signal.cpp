#include <system_error>
#include <utility>
#include <weft/detail/exceptions.hpp>
#include <weft/stop_on_signal.hpp>

namespace weft {

StopOnSignal::StopOnSignal(std::initializer_list<int> signals) {
  auto [set, error] = io::SignalSet::watch(signals);
  if (error) WEFT_THROW(std::system_error(error, "weft::StopOnSignal"));
  signals_ = std::move(set);
  fiber_.go([this] { wait(); });
}

StopOnSignal::~StopOnSignal() {
  (void)end_.request_stop();
  fiber_.wait();
}

void StopOnSignal::wait() noexcept {
  const auto [signal, error] = signals_.wait(end_.get_token());
  signals_ = io::SignalSet();
  if (error) return;
  signal_.store(signal, detail::release);  // [signal]
  (void)stop_.request_stop();
}

}  // namespace weft
