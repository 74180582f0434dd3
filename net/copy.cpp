#include <weft/net/copy.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>
#include <weft/error.hpp>
#include <weft/go.hpp>

#include "net/splice.hpp"

namespace weft::net {

namespace {

constexpr std::size_t kCopyBuffer = 32 * 1024;

Result<std::uint64_t> copy_by_buffer(const detail::CopySource& from, const detail::CopySink& to,
                                     const Until& until) {
  std::vector<std::byte> buffer(kCopyBuffer);
  for (std::uint64_t done = 0;;) {
    const auto [count, failed] = from.bytes.read(from.bytes.stream, buffer, until);
    if (failed == Errc::end_of_stream) return {.value = done};
    if (failed) return {.value = done, .error = failed};
    const auto [taken, refused] =
        to.bytes.write(to.bytes.stream, std::span(buffer).first(count), until);
    done += taken;
    if (refused) return {.value = done, .error = refused};
    // Streams that are always ready end no wait, so the loop checks the limit itself.
    if (until.is_over()) return {.value = done, .error = until.reason()};
  }
}

}  // namespace

}  // namespace weft::net

namespace weft::detail {

Result<std::uint64_t> copy(const CopySource& from, const CopySink& to, const Until& until) {
  Result<std::uint64_t> spliced = {};
  if (from.handle != nullptr && to.handle != nullptr) {
    const auto [moved, is_done] = net::copy_by_splice(*from.handle, *to.handle, to.bytes, until);
    if (is_done) return moved;
    spliced = moved;
  }
  auto rest = net::copy_by_buffer(from, to, until);
  rest.value += spliced.value;
  return rest;
}

Result<net::Relayed> relay(const CopySource& from_first, const CopySink& to_first,
                           const CopySource& from_second, const CopySink& to_second,
                           const Until& until) {
  std::stop_source stop;
  const std::stop_token token = stop.get_token();
  const Until bound(until.deadline(), token);
  // The caller's stop request ends both directions, too.
  std::optional<std::stop_callback<std::function<void()>>> passed_on;
  if (until.token() != nullptr) {
    passed_on.emplace(*until.token(), [&stop] { stop.request_stop(); });
  }
  Result<net::Relayed> result;
  // Only one direction wins the request to stop, so `result.error` has one writer.
  const auto one_way = [&](const CopySource& from, const CopySink& to) -> Result<std::uint64_t> {
    try {
      auto copied = copy(from, to, bound);
      if (!copied.error) copied.error = to.finish(to.bytes.stream, bound);
      if (copied.error && stop.request_stop()) result.error = copied.error;
      return copied;
    } catch (...) {
      stop.request_stop();
      throw;
    }
  };
  auto backward = weft::spawn([&] { return one_way(from_second, to_first); });
  const auto forward = one_way(from_first, to_second);
  const auto back = backward.join();
  result.value = {.forward = forward.value, .backward = back.value};
  if (!result.error) result.error = forward.error ? forward.error : back.error;
  return result;
}

}  // namespace weft::detail
