#include "runtime/base/program_pages.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace reprise {
namespace {

// Returns whether the loader wrote into segments that are not writable: their pages then differ
// from the file's.
bool HasTextRelocations(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_TEXTREL) return true;
      if (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0) return true;
    }
  }
  return false;
}

int DropReadOnlySegments(dl_phdr_info* object, size_t /*size*/, void* /*data*/) {
  if (HasTextRelocations(*object)) return 0;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    // Whole pages of the segment: the next one may share its last, and be written.
    const uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const uintptr_t end = (object->dlpi_addr + segment.p_vaddr + segment.p_filesz) / page * page;
    // For the kernel's own object the call fails, which does no harm.
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void DropProgramPages() { dl_iterate_phdr(DropReadOnlySegments, nullptr); }

}  // namespace reprise
