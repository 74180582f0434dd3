// Queries about paths, and changes of names, without blocking a worker.
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <utility>
#include <weft/files.hpp>

#include "files/names.hpp"
#include "files/regular.hpp"

namespace weft::files {

namespace {

constexpr mode_t kPermissions = 07777;

Kind kind_of_mode(mode_t mode) noexcept {
  if (S_ISREG(mode)) return Kind::file;
  if (S_ISDIR(mode)) return Kind::directory;
  return S_ISLNK(mode) ? Kind::symbolic_link : Kind::other;
}

Result<Status> status_by(CallResult (*look)(const std::string&, struct stat&) noexcept,
                         std::string path, const Until& until) {
  if (const auto malformed = check_path(path)) return {.error = malformed};
  auto [answer, error] = file_group().run(
      [look, name = std::move(path)] {
        struct stat found {};
        Result<Status> facts{.error = look(name, found).code()};
        if (facts.error) return facts;
        const auto since = std::chrono::seconds(found.st_mtim.tv_sec) +
                           std::chrono::nanoseconds(found.st_mtim.tv_nsec);
        using Moment = std::chrono::system_clock::time_point;
        facts.value = {.kind = kind_of_mode(found.st_mode),
                       .mode = found.st_mode & kPermissions,
                       .size = static_cast<std::uint64_t>(found.st_size),
                       .modified = Moment(std::chrono::duration_cast<Moment::duration>(since))};
        return facts;
      },
      until);
  if (error) return {.error = error};
  return answer;
}

// Makes a change of names on a thread, which returns its error.
template <class Change>
Result<void> change_names(Change change, const Until& until) {
  auto [failed, error] = file_group().run(std::move(change), until);
  return error ? error : failed;
}

}  // namespace

Result<Status> status(std::string path, const Until& until) {
  return status_by(&look_at_path, std::move(path), until);
}

Result<Status> link_status(std::string path, const Until& until) {
  return status_by(&look_at_link, std::move(path), until);
}

Result<void> rename(std::string from, std::string to, const Until& until) {
  if (const auto malformed = check_path(from)) return malformed;
  if (const auto malformed = check_path(to)) return malformed;
  return change_names(
      [from = std::move(from), to = std::move(to)] { return rename_path(from, to).code(); }, until);
}

Result<void> remove(std::string path, const Until& until) {
  if (const auto malformed = check_path(path)) return malformed;
  return change_names([path = std::move(path)] { return remove_path(path).code(); }, until);
}

Result<void> remove_all(std::string path, const Until& until) {
  if (const auto malformed = check_path(path)) return malformed;
  return change_names([path = std::move(path)] { return remove_tree(path); }, until);
}

Result<void> create_directory(std::string path, const Until& until) {
  if (const auto malformed = check_path(path)) return malformed;
  return change_names([path = std::move(path)] { return make_directory(path, 0777).code(); },
                      until);
}

}  // namespace weft::files
