// Keeps a pool of sessions with PostgreSQL. Fibers make the calls, which park.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/until.hpp>

#include "postgres_session.hpp"

// Uses a channel of sessions as a pool with a cap: a caller waits if no session is free. The
// sessions start unconnected.
class PostgresPool {
 public:
  // Each new session runs the queries `first`, in one round trip and so in one transaction.
  PostgresPool(std::string where, std::size_t connections, std::vector<Query> first)
      : where_(std::move(where)), first_(std::move(first)), idle_(connections) {
    for (std::size_t i = 0; i < connections; ++i) (void)idle_.send(nullptr);
  }

  // Calls `use` with a session that no other caller uses meanwhile, and returns its result.
  template <class Use>
  auto with_session(const weft::Until& until, Use use) {
    std::optional<std::unique_ptr<PostgresSession>> session;
    if (idle_.receive_until(session, until) != weft::ChannelStatus::ok) {
      throw PostgresError("no connection is free");
    }
    const GiveBack give_back{idle_, *session};
    if (*session == nullptr) {
      auto fresh = std::make_unique<PostgresSession>(where_, until);
      (void)fresh->ask(first_, until);
      *session = std::move(fresh);
    }
    return use(**session);
  }

 private:
  struct GiveBack {
    ~GiveBack() {
      if (session != nullptr && !session->is_idle()) session.reset();
      (void)idle.send(std::move(session));  // There is room for all sessions.
    }
    weft::Channel<std::unique_ptr<PostgresSession>>& idle;
    std::unique_ptr<PostgresSession>& session;
  };

  const std::string where_;
  const std::vector<Query> first_;
  weft::Channel<std::unique_ptr<PostgresSession>> idle_;
};
