// Makes one call fail: interpose.cpp replaces functions of the C library and operator new, in this
// program only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::test {

// The system calls that the library makes.
enum class Call : std::uint8_t {
  allocate,          // operator new, of all kinds: std::bad_alloc, or null for nothrow
  allocate_in_tls,   // OpenSSL's malloc and realloc
  allocate_in_dns,   // c-ares' malloc and realloc
  map,               // mmap
  unmap,             // munmap
  advise,            // madvise
  advise_many,       // process_madvise
  protect,           // mprotect
  start_thread,      // pthread_create
  futex_wait,        //
  set_signal_stack,  // sigaltstack
  set_handler,       // sigaction
  create_epoll,      // epoll_create1
  control_epoll,     // epoll_ctl
  wait_epoll,        // epoll_pwait2, epoll_wait
  create_event,      // eventfd
  open_file,         // open, openat2, fopen
  read_file,         // read
  write_file,        // write
  close_file,        // close
  read_at,           // pread, preadv2
  write_at,          // pwrite, pwritev2
  get_status,        // stat, lstat, fstat
  sync_file,         // fdatasync
  rename_file,       // rename
  remove_file,       // unlink, rmdir, unlinkat
  make_directory,    // mkdir
  open_directory,    // opendir, openat, fdopendir
  read_directory,    // readdir
  control_file,      // fcntl
  make_pipe,         // pipe2
  start_process,     // posix_spawnp
  open_process,      // pidfd_open
  await_process,     // waitid
  kill_process,      // kill
  look_up,           // getaddrinfo; EAI_AGAIN and the like, without their sign
  make_socket,       // socket
  make_pair,         // socketpair
  bind_socket,       // bind
  listen_socket,     // listen
  accept_socket,     // accept4
  connect_socket,    // connect
  set_option,        // setsockopt
  get_option,        // getsockopt
  get_name,          // getsockname, getpeername
  receive,           // recv, recvfrom
  send,              // send, sendto, writev
  receive_message,   // recvmsg, recvmmsg
  send_message,      // sendmsg, sendmmsg
  send_file,         // sendfile
  shut_down,         // shutdown
  poll_socket,       // poll
  get_affinity,      // sched_getaffinity
};
[[nodiscard]] const char* to_string(Call call) noexcept;

// An error number, or a rare effect of a call that is no error.
inline constexpr int kShort = -1;  // Transfers only one byte of a stream or a file.

struct Fault {
  Call call;
  int error;
  unsigned times = 1;   // The number of consecutive calls that fail.
  unsigned stride = 1;  // Tries only each `stride`-th number, for very frequent calls.
};

// Counts the calls from now on, beginning with 1. The call with `number` fails. Only one fault can
// be armed at a time.
void arm(const Fault& fault, std::uint64_t number) noexcept;
// From now on, each call fails by chance, once in `one_in` calls, with one of the usual errors of
// its kind. Calls that a runtime makes only at its start do not fail.
void arm_by_chance(std::uint64_t one_in) noexcept;
// Ends the injection, and returns whether a call has failed.
bool disarm() noexcept;

// Counts the resources that the replaced calls hold, without the C library's own.
struct Held {
  std::int64_t blocks = 0;        // operator new allocates these.
  std::int64_t blocks_below = 0;  // OpenSSL and c-ares allocate these.
  std::int64_t answers = 0;       // getaddrinfo returns these.
  std::int64_t mapped_bytes = 0;  // mmap maps these.
};
[[nodiscard]] Held held() noexcept;

}  // namespace weft::test
