#include "libs/http/server/longest.hpp"

#include <cstdlib>
#include <utility>

#include "libs/http/server/server_connection.hpp"

namespace weft::http {

namespace {

// Returns the time by which find_longest() orders a request, or 0 if there is no request or wait.
std::int64_t moment_of(const Progress& progress, LongestBy by) noexcept {
  const std::int64_t began = progress.began();
  return by == LongestBy::age || began == 0 ? began : std::abs(progress.waits_since());
}

// Reads the details of a request that find_longest() has stored. Connections::visit() visits the
// connections in parts, and read() runs after each part, for the requests that are still among the
// longest. For all other requests, no system call reads the peer's address.
void read(Busy& busy) noexcept {
  const ServerConnection* const connection = std::exchange(busy.connection, nullptr);
  if (connection == nullptr) return;
  busy.progress = connection->transport().progress().read();
  busy.fiber = connection->caller();
  busy.peer = connection->transport().peer();
}

}  // namespace

std::size_t find_longest(const net::Connections& connections, std::span<Busy> room,
                         LongestBy by) noexcept {
  std::size_t count = 0;
  const auto visit = [&](const net::ConnectionRecord& record) {
    const auto& connection = static_cast<const ServerConnection&>(record);
    const std::int64_t since = moment_of(connection.transport().progress(), by);
    if (since == 0 || room.empty()) return;
    if (count == room.size() && room[count - 1].since <= since) return;
    std::size_t place = count < room.size() ? count++ : count - 1;
    for (; place > 0 && room[place - 1].since > since; --place) room[place] = room[place - 1];
    room[place] = {.connection = &connection, .since = since};
  };
  connections.visit(visit, [&] {
    for (Busy& busy : room.first(count)) read(busy);
  });
  return count;
}

}  // namespace weft::http
