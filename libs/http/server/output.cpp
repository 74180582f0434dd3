#include "libs/http/server/output.hpp"

#include <charconv>
#include <cstring>
#include <ctime>
#include <weft/detail/simulated.hpp>

#include "libs/http/server/transport.hpp"

namespace weft::http {

namespace {

constexpr std::size_t kDateSize = 37;

// Caches the text of the Date header for one thread. Each call to copy_date() looks up the DateText
// of its thread, because fibers move between threads.
struct DateText {
  std::time_t second = -1;
  std::array<char, kDateSize + 1> text{};
};

// Copies the Date header, which each thread formats at most once a second. Not inlined, because a
// compiler could otherwise keep the address of a thread_local across a switch.
[[gnu::noinline]] void copy_date(char* to) noexcept {
  thread_local DateText date;
  timespec now{};
  if (const detail::Simulated* simulation = detail::simulated()) [[unlikely]] {
    now.tv_sec = static_cast<std::time_t>(simulation->wall_clock() / 1'000'000'000);
  } else {
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  }
  if (now.tv_sec != date.second) {
    std::tm parts{};
    ::gmtime_r(&now.tv_sec, &parts);
    // strftime() is not used, because its names of days and months depend on the locale.
    constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const char* const day = kDays[parts.tm_wday];
    const char* const month = kMonths[parts.tm_mon];
    char* at = date.text.data();
    const auto put = [&at](std::string_view text) {
      (void)text.copy(at, text.size());
      at += text.size();
    };
    const auto put_two = [&at](int number) {
      *at++ = static_cast<char>('0' + number / 10 % 10);
      *at++ = static_cast<char>('0' + number % 10);
    };
    put("Date: ");
    put(day);
    put(", ");
    put_two(parts.tm_mday);
    put(" ");
    put(month);
    put(" ");
    put_two((parts.tm_year + 1900) / 100);
    put_two(parts.tm_year % 100);
    put(" ");
    put_two(parts.tm_hour);
    put(":");
    put_two(parts.tm_min);
    put(":");
    put_two(parts.tm_sec);
    put(" GMT\r\n");
    date.second = now.tv_sec;
  }
  std::memcpy(to, date.text.data(), kDateSize);
}

}  // namespace

Output::Output(Transport& transport, const Limits& limits) noexcept
    : transport_(transport), allowance_(limits.write, limits.least_rate) {}

void Output::append(std::string_view text) {
  if (error_) return;
  if (text.size() > kSize - size_) {
    if (flush()) return;
    if (text.size() > kSize) {
      error_ = transport_.write(text, allowance_);
      return;
    }
  }
  (void)text.copy(buffer_.data() + size_, text.size());
  size_ += text.size();
}

void Output::append_number(std::size_t number, int base) {
  std::array<char, 24> digits;
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number, base);
  (void)error;
  append({digits.begin(), static_cast<std::size_t>(end - digits.begin())});
}

void Output::append_chunk(std::string_view part) {
  append_number(part.size(), 16);
  append("\r\n");
  append(part);
  append("\r\n");
}

void Output::append_date() {
  std::array<char, kDateSize> text;
  copy_date(text.data());
  append({text.data(), text.size()});
}

std::error_code Output::flush() {
  if (!error_ && size_ > 0) error_ = transport_.write({buffer_.data(), size_}, allowance_);
  size_ = 0;
  return error_;
}

}  // namespace weft::http
