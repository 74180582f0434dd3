#include <weft/http/response.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "libs/http/server/exchange.hpp"
#include "libs/http/wire/link.hpp"

namespace weft::http {

net::Result<std::size_t> Upgraded::read_some(std::span<std::byte> buffer, const Until& until) {
  if (early.empty()) return Link{stream, layer}.read_some(buffer, until);
  const std::size_t count = std::min(early.size(), buffer.size());
  if (count > 0) std::memcpy(buffer.data(), early.data(), count);
  early.remove_prefix(count);
  return {.value = count};
}

net::Result<std::size_t> Upgraded::write_some(std::span<const std::byte> data, const Until& until) {
  return Link{stream, layer}.write_some(data, until);
}

net::Result<std::size_t> Upgraded::write_all(std::span<const std::byte> data, const Until& until) {
  return Link{stream, layer}.write_all(data, until);
}

void Upgraded::close() noexcept {
  try {
    Link{stream, layer}.announce_end();
  } catch (const std::bad_alloc&) {
    // If memory runs out, `layer` cannot announce the end of the stream, but the peer sees that
    // the connection is closed.
  }
  stream.close();
}

void Response::set_status(int status) noexcept { exchange_.answer().set_status(status); }
int Response::status() const noexcept { return exchange_.answer().status(); }
void Response::add_header(std::string_view name, std::string_view value) {
  exchange_.answer().add_header(name, value, Answer::Earlier::kept);
}
void Response::set_header(std::string_view name, std::string_view value) {
  exchange_.answer().add_header(name, value, Answer::Earlier::replaced);
}
void Response::remove_header(std::string_view name) noexcept {
  if (!exchange_.answer().started()) exchange_.answer().remove_header(name);
}
void Response::close_after() noexcept { exchange_.answer().close_after(); }
net::Result<void> Response::send(std::string_view body) { return exchange_.answer().send(body); }
net::Result<void> Response::write(std::string_view part) { return exchange_.answer().write(part); }
net::Result<void> Response::write(std::span<const std::byte> part) {
  return exchange_.answer().write({reinterpret_cast<const char*>(part.data()), part.size()});
}
net::Result<void> Response::write_file(int descriptor, std::uint64_t offset, std::uint64_t size) {
  return exchange_.answer().write_file(descriptor, offset, size);
}
void Response::break_off() noexcept {
  if (exchange_.answer().started()) exchange_.answer().break_off();
}
bool Response::started() const noexcept { return exchange_.answer().started(); }
net::Result<void> Response::upgrade(std::string_view protocol,
                                    weft::detail::SharedFunction<void(Upgraded)> talk) {
  if (!talk) return exchange_.answer().upgrade(protocol, nullptr);
  return exchange_.answer().upgrade(protocol, [talk = std::move(talk)](const Upgraded& upgraded) {
    talk(upgraded);
    return net::Next::close;
  });
}
net::Result<void> Response::converse(std::string_view protocol, Talk talk) {
  return exchange_.answer().upgrade(protocol, std::move(talk));
}

}  // namespace weft::http
