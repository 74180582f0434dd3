// Declares clients of libraries that block. Each client talks to its real server.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft::test {

// Is a connection. One caller at a time uses it, from any thread.
class Client {
 public:
  Client() = default;
  virtual ~Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Each function sends one request, and returns whether the answer is right. The server takes 0.1
  // s for the slow request.
  virtual bool call_quickly() = 0;
  virtual bool call_slowly() = 0;
};

// Connects; returns null if the server refuses. `where` depends on the library: see `run`.
using Connect = std::unique_ptr<Client> (*)(const std::string& where);

struct Library {
  std::string_view name;
  Connect connect;
};

// Returns the libraries that this program was built with.
[[nodiscard]] std::span<const Library> libraries() noexcept;

#ifdef WEFT_TEST_LIBPQ
std::unique_ptr<Client> connect_libpq(const std::string& where);
#endif
#ifdef WEFT_TEST_MARIADB
std::unique_ptr<Client> connect_mariadb(const std::string& where);
#endif
#ifdef WEFT_TEST_HIREDIS
std::unique_ptr<Client> connect_hiredis(const std::string& where);
#endif
#ifdef WEFT_TEST_CURL
std::unique_ptr<Client> connect_curl(const std::string& where);
#endif
#ifdef WEFT_TEST_OPENSSL
std::unique_ptr<Client> connect_openssl(const std::string& where);
#endif
#ifdef WEFT_TEST_HTTPLIB
std::unique_ptr<Client> connect_httplib(const std::string& where);
#endif
#ifdef WEFT_TEST_LIBSSH2
std::unique_ptr<Client> connect_libssh2(const std::string& where);
#endif

}  // namespace weft::test
