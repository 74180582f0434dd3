// Writes the format of pprof: github.com/google/pprof/blob/main/proto/profile.proto.
#include <link.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.hpp"
#include "runtime/call_names.hpp"
#include "runtime/profile_stacks.hpp"
#include "runtime/symbols.hpp"

namespace weft::runtime {

namespace {

// A message of protocol buffers, written field by field. Fields with the value 0 may be left out.
class ProtoMessage {
 public:
  void number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void text(unsigned field, std::string_view value) {
    varint(field << 3 | kOfLength);
    varint(value.size());
    bytes_.append(value);
  }
  void message(unsigned field, const ProtoMessage& value) { text(field, value.bytes_); }
  void packed(unsigned field, const std::vector<std::uint64_t>& values) {
    ProtoMessage numbers;
    for (const std::uint64_t value : values) numbers.varint(value);
    message(field, numbers);
  }
  [[nodiscard]] std::string take() noexcept { return std::move(bytes_); }

 private:
  static constexpr unsigned kOfLength = 2;

  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

// A range of a module's code in memory.
struct CodeMapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t offset = 0;  // The offset in the file.
  std::string file;
};

std::string path_of_program() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size < 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(size));
}

std::vector<CodeMapping> code_mappings() {
  std::vector<CodeMapping> mappings;
  (void)::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          static_cast<std::vector<CodeMapping>*>(found)->push_back(
              {begin, begin + part.p_memsz, part.p_offset, std::string(name)});
        }
        return 0;
      },
      &mappings);
  for (CodeMapping& mapping : mappings) {
    if (mapping.file.empty()) mapping.file = path_of_program();
  }
  return mappings;
}

// profile.proto defines the numbers of the fields.
class PprofWriter {
 public:
  std::string write(const Profile& profile) {
    (void)string(std::string());  // The first string has to be empty.
    value_type(1, profile.counts, "count");
    value_type(1, profile.times, "nanoseconds");
    for (const auto& [stack, values] : profile.stacks) sample(stack, values);
    for (std::size_t i = 0; i < mappings_.size(); ++i) mapping(i);
    if (profile.lost > 0) out_.number(13, string("samples lost: " + std::to_string(profile.lost)));
    out_.number(9, static_cast<std::uint64_t>(profile.begin));
    out_.number(10, static_cast<std::uint64_t>(profile.duration.count()));
    value_type(11, profile.times, "nanoseconds");
    out_.number(12, static_cast<std::uint64_t>(profile.period.count()));
    for (const std::string* text : texts_) out_.text(6, valid(*text));
    return out_.take();
  }

 private:
  std::uint64_t string(std::string text) {
    const auto [place, is_new] = strings_.try_emplace(std::move(text), strings_.size());
    if (is_new) texts_.push_back(&place->first);  // A map's nodes keep their addresses.
    return place->second;
  }

  // Readers refuse text that is not UTF-8.
  static std::string valid(std::string_view text) {
    std::string characters;
    while (!text.empty()) characters.append(base::take_character(text));
    return characters;
  }

  void value_type(unsigned field, std::string_view type, std::string_view unit) {
    ProtoMessage message;
    message.number(1, string(std::string(type)));
    message.number(2, string(std::string(unit)));
    out_.message(field, message);
  }

  // Returns the location of a name that stands for no code.
  std::uint64_t location(const std::string& name) {
    const auto [place, is_new] = named_.try_emplace(name, locations_ + 1);
    if (is_new) add_location(0, 0, name);
    return place->second;
  }

  // Returns the location of a call. Tools that find the module's debug information replace the
  // name.
  std::uint64_t location(const void* returns_to) {
    const auto [place, is_new] = calls_.try_emplace(returns_to, locations_ + 1);
    if (!is_new) return place->second;
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(returns_to) - 1;
    std::size_t mapping = 0;
    while (mapping < mappings_.size() &&
           (address < mappings_[mapping].begin || address >= mappings_[mapping].end)) {
      ++mapping;
    }
    add_location(mapping < mappings_.size() ? mapping + 1 : 0, address, names_.of(returns_to));
    return place->second;
  }

  // A location has one function, of the same number.
  void add_location(std::uint64_t mapping, std::uint64_t address, const std::string& name) {
    const std::uint64_t id = ++locations_;
    ProtoMessage function;
    function.number(1, id);
    function.number(2, string(name));
    out_.message(5, function);
    ProtoMessage line;
    line.number(1, id);
    ProtoMessage location;
    location.number(1, id);
    location.number(2, mapping);
    location.number(3, address);
    location.message(4, line);
    out_.message(4, location);
  }

  void sample(const ProfileStack& stack, const Profile::Values& values) {
    std::vector<std::uint64_t> locations;  // Innermost first.
    if (!stack.reason.empty()) {
      locations.push_back(location(std::string("[").append(stack.reason).append("]")));
    }
    for (const void* call : stack.calls) locations.push_back(location(call));
    if (stack.type != nullptr) locations.push_back(location(runtime::describe_type(*stack.type)));
    if (!stack.fiber.empty()) locations.push_back(location(stack.fiber));
    ProtoMessage message;
    message.packed(1, locations);
    message.packed(2, {values.count, static_cast<std::uint64_t>(values.nanoseconds)});
    if (!stack.fiber.empty()) {
      ProtoMessage label;
      label.number(1, string("fiber"));
      label.number(2, string(stack.fiber));
      message.message(3, label);
    }
    out_.message(2, message);
  }

  void mapping(std::size_t index) {
    const CodeMapping& code = mappings_[index];
    ProtoMessage message;
    message.number(1, index + 1);
    message.number(2, code.begin);
    message.number(3, code.end);
    message.number(4, code.offset);
    message.number(5, string(code.file));
    out_.message(3, message);
  }

  ProtoMessage out_;
  const std::vector<CodeMapping> mappings_ = code_mappings();
  CallNames names_;
  std::unordered_map<std::string, std::uint64_t> strings_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::string, std::uint64_t> named_;
  std::unordered_map<const void*, std::uint64_t> calls_;
  std::uint64_t locations_ = 0;
};

}  // namespace

std::string as_pprof(const Profile& profile) { return PprofWriter().write(profile); }

}  // namespace weft::runtime
