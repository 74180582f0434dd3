// Tests calls that a helper thread makes: opens of files, and lookups of hosts and services.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/posix/both_ways.hpp"

namespace {

using weft::posix::Scope;
using weft::test::check_both_ways;
using weft::test::has_hooks;
using weft::test::Log;
using weft::test::note;

TEST_SUITE_BEGIN("posix/helper");

// Makes a folder; the destructor removes the files and the folder.
struct Folder {
  std::array<char, 20> name{"/tmp/weft-XXXXXX"};
  Folder() { CHECK(::mkdtemp(name.data()) != nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    for (const char* file : {"file", "new"}) ::unlink(path_of(file).c_str());
    ::rmdir(name.data());
  }
  [[nodiscard]] std::string path_of(const char* file) const {
    return std::string(name.data()) + '/' + file;
  }
};

FIBER_TEST_CASE("opening files in a posix::Scope returns the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const auto look = [&](int file) {
      note(log, file < 0 ? -1 : 0);
      if (file < 0) return;
      struct stat status {};
      note(log, ::fstat(file, &status));
      log.push_back(static_cast<long>(status.st_mode));
      note(log, ::fcntl(file, F_GETFL));
      note(log, ::fcntl(file, F_GETFD));
      ::close(file);
    };
    const Folder folder;
    const std::string path = folder.path_of("file");
    look(::open(path.c_str(), O_RDONLY));
    look(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
    look(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    look(::creat(path.c_str(), 0600));
    look(::openat(AT_FDCWD, path.c_str(), O_RDWR | O_APPEND));
    const int above = ::open(folder.name.data(), O_PATH | O_DIRECTORY);
    look(::openat(above, "file", O_RDONLY));
    look(::openat(above, "new", O_RDWR | O_CREAT, 0604));
    look(::openat(-1, "new", O_RDONLY));
    ::close(above);
    look(::open("/proc/self/stat", O_RDONLY));
    look(::open("", O_RDONLY));
  });
}

FIBER_TEST_CASE("reads at an offset in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const Folder folder;
    const std::string path = folder.path_of("file");
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    std::string text(10'000, 'x');
    text[5000] = 'y';
    note(log, ::pwrite(file, text.data(), text.size(), 0));
    note(log, ::fsync(file));
    std::string buffer(6000, ' ');
    const std::array<iovec, 2> parts{{{buffer.data(), 10}, {buffer.data() + 10, 5990}}};
    for (const bool is_cached : {true, false}) {
      // The kernel drops the pages on most file systems.
      if (!is_cached) note(log, ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
      for (const off_t offset : {off_t{4000}, off_t{9000}, off_t{10'000}, off_t{-1}}) {
        note(log, ::pread(file, buffer.data(), buffer.size(), offset));
        log.push_back(static_cast<long>(buffer.find('y')));
        note(log, ::preadv(file, parts.data(), 2, offset));
        log.push_back(static_cast<long>(buffer.find('y')));
      }
    }
    note(log, ::pread(file, buffer.data(), 0, 0));
    note(log, ::pread(-1, buffer.data(), 1, 0));
    note(log, ::lseek(file, 0, SEEK_CUR));
    ::close(file);
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    note(log, ::pread(ends[0], buffer.data(), 1, 0));
    for (const int end : ends) ::close(end);
  });
}

// Without a monitor, an open that blocked the worker would keep the other end closed forever.
FIBER_TEST_CASE_WITH("fibers of one worker open the two ends of a FIFO", {.workers = {1}}) {
  if (!has_hooks()) return;
  const Folder folder;
  const std::string path = folder.path_of("file");
  CHECK(::mkfifo(path.c_str(), 0600) == 0);
  const auto check_opened = [](int file) {
    CHECK(file >= 0);
    ::close(file);
  };
  for (int way = 0; way < 3; ++way) {
    auto reader = weft::spawn(weft::posix::in_scope([&] {
      if (way == 2) return check_opened(::openat(AT_FDCWD, path.c_str(), O_RDONLY));
      check_opened(::open(path.c_str(), O_RDONLY));
    }));
    weft::this_fiber::yield();
    const Scope scope;
    if (way == 0) check_opened(::open(path.c_str(), O_WRONLY));
    if (way == 1) check_opened(::creat(path.c_str(), 0600));
    if (way == 2) check_opened(::openat(AT_FDCWD, path.c_str(), O_WRONLY));
    reader.join();
  }
}

// Each name is a number, or is in the system's own files, so these lookups use no name server.
FIBER_TEST_CASE(
    "lookups of hosts and services in a posix::Scope return the same results as on a thread") {
  if (!has_hooks()) return;
  check_both_ways([](Log& log) {
    const auto look = [&](const hostent* host) {
      log.push_back(host == nullptr ? -h_errno : host->h_addrtype);
      if (host == nullptr) return;
      for (int i = 0; i < host->h_length; ++i) log.push_back(host->h_addr_list[0][i]);
    };
    const auto look_at_service = [&](const servent* service) {
      log.push_back(service == nullptr ? -1 : service->s_port);
    };
    look(::gethostbyname("127.0.0.1"));
    look(::gethostbyname("localhost"));
    look(::gethostbyname2("::1", AF_INET));
    look(::gethostbyname2("::1", AF_INET6));
    const in_addr address{htonl(INADDR_LOOPBACK)};
    look(::gethostbyaddr(&address, sizeof address, AF_INET));
    look_at_service(::getservbyname("http", "tcp"));
    look_at_service(::getservbyname("no such service", "tcp"));
    look_at_service(::getservbyport(htons(80), "tcp"));
    hostent host{};
    hostent* found = nullptr;
    servent service{};
    servent* found_service = nullptr;
    std::array<char, 1024> buffer{};
    int error = 0;
    note(log, ::gethostbyname_r("127.0.0.1", &host, buffer.data(), buffer.size(), &found, &error));
    look(found);
    note(log, ::gethostbyname_r("127.0.0.1", &host, buffer.data(), 8, &found, &error));
    log.push_back(error);
    note(log,
         ::gethostbyname2_r("::1", AF_INET6, &host, buffer.data(), buffer.size(), &found, &error));
    look(found);
    note(log, ::gethostbyaddr_r(&address, sizeof address, AF_INET, &host, buffer.data(),
                                buffer.size(), &found, &error));
    look(found);
    note(log,
         ::getservbyname_r("http", "tcp", &service, buffer.data(), buffer.size(), &found_service));
    look_at_service(found_service);
    note(log, ::getservbyport_r(htons(80), "tcp", &service, buffer.data(), buffer.size(),
                                &found_service));
    look_at_service(found_service);
  });
}

FIBER_TEST_CASE(
    "a fiber's gethostbyname() result stays valid when another fiber calls gethostbyname()") {
  if (!has_hooks()) return;
  const auto last_byte = [](const hostent* host) { return host->h_addr_list[0][3]; };
  const Scope scope;
  const hostent* mine = ::gethostbyname("127.0.0.1");
  weft::spawn(weft::posix::in_scope([&] {
    CHECK(last_byte(::gethostbyname("127.0.0.2")) == 2);
  })).join();
  CHECK(last_byte(mine) == 1);
}

TEST_SUITE_END();

}  // namespace
