// Clients of databases.
#include <atomic>
#include <cstdio>
#include <memory>

#include "tests/posix/servers/client.hpp"
#ifdef WEFT_TEST_LIBPQ
#include <libpq-fe.h>
#endif
#ifdef WEFT_TEST_MARIADB
#include <mysql.h>
#endif
#ifdef WEFT_TEST_HIREDIS
#include <hiredis/hiredis.h>
#endif

namespace weft::test {

#ifdef WEFT_TEST_LIBPQ
namespace {

class Libpq final : public Client {
 public:
  explicit Libpq(const std::string& where) : connection_(::PQconnectdb(where.c_str())) {}
  ~Libpq() override { ::PQfinish(connection_); }

  [[nodiscard]] bool is_connected() const { return ::PQstatus(connection_) == CONNECTION_OK; }
  bool call_quickly() override { return ask("select 1"); }
  bool call_slowly() override { return ask("select 1 from pg_sleep(0.1)"); }

 private:
  bool ask(const char* query) {
    PGresult* result = ::PQexec(connection_, query);
    const bool is_right = ::PQresultStatus(result) == PGRES_TUPLES_OK && ::PQntuples(result) == 1 &&
                          std::string_view(::PQgetvalue(result, 0, 0)) == "1";
    ::PQclear(result);
    return is_right;
  }

  PGconn* const connection_;
};

}  // namespace

std::unique_ptr<Client> connect_libpq(const std::string& where) {
  auto client = std::make_unique<Libpq>(where);
  if (!client->is_connected()) return nullptr;
  return client;
}
#endif

#ifdef WEFT_TEST_MARIADB
namespace {

// This call precedes any scope, because it looks up a service in a pthread_once(), where no fiber
// parks.
const int mariadb_begun = ::mysql_library_init(0, nullptr, nullptr);

class Mariadb final : public Client {
 public:
  Mariadb() : connection_(::mysql_init(nullptr)) {}
  ~Mariadb() override { ::mysql_close(connection_); }

  [[nodiscard]] bool connect(const std::string& port) {
    return mariadb_begun == 0 &&
           ::mysql_real_connect(connection_, "127.0.0.1", "weft", "weft", nullptr,
                                static_cast<unsigned>(std::stoul(port)), nullptr, 0) != nullptr;
  }
  bool call_quickly() override { return ask("select 0"); }
  bool call_slowly() override { return ask("select sleep(0.1)"); }

 private:
  bool ask(const char* query) {
    if (::mysql_query(connection_, query) != 0) return false;
    MYSQL_RES* result = ::mysql_store_result(connection_);
    if (result == nullptr) return false;
    const MYSQL_ROW row = ::mysql_fetch_row(result);
    const bool is_right = row != nullptr && row[0] != nullptr && std::string_view(row[0]) == "0";
    ::mysql_free_result(result);
    return is_right;
  }

  MYSQL* const connection_;
};

}  // namespace

std::unique_ptr<Client> connect_mariadb(const std::string& where) {
  auto client = std::make_unique<Mariadb>();
  if (!client->connect(where)) return nullptr;
  return client;
}
#endif

#ifdef WEFT_TEST_HIREDIS
namespace {

class Hiredis final : public Client {
 public:
  explicit Hiredis(const std::string& port)
      : context_(::redisConnect("127.0.0.1", std::stoi(port))) {}
  ~Hiredis() override { ::redisFree(context_); }

  [[nodiscard]] bool is_connected() const { return context_ != nullptr && context_->err == 0; }
  bool call_quickly() override { return ask(REDIS_REPLY_STATUS, "PING"); }
  bool call_slowly() override { return ask(REDIS_REPLY_NIL, ("BLPOP " + list_ + " 0.1").c_str()); }

 private:
  static std::string new_list() {
    static std::atomic<int> number{0};
    return "list" + std::to_string(++number);
  }
  bool ask(int type, const char* command) {
    auto* reply = static_cast<redisReply*>(::redisCommand(context_, command));
    if (reply == nullptr) return false;
    const bool is_right = reply->type == type;
    ::freeReplyObject(reply);
    return is_right;
  }

  redisContext* const context_;
  const std::string list_ = new_list();
};

}  // namespace

std::unique_ptr<Client> connect_hiredis(const std::string& where) {
  auto client = std::make_unique<Hiredis>(where);
  if (!client->is_connected()) return nullptr;
  return client;
}
#endif

}  // namespace weft::test
