# cmake -DOUTPUT=FILE.cc -P EmbedFiles.cmake FILE...: writes a source of a table of the files, by name.
# Files are texts: each becomes a raw string, in parts, since compilers bound the length of one.
set(rows)
math(EXPR last "${CMAKE_ARGC} - 1")
set(files)
foreach(i RANGE ${last})
  if(DEFINED seen)
    list(APPEND files ${CMAKE_ARGV${i}})
  elseif(CMAKE_ARGV${i} MATCHES "EmbedFiles\\.cmake$")
    set(seen TRUE)
  endif()
endforeach()
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  string(REGEX REPLACE "(................................)" "\"\\1\"\n" lines "${hex}")
  string(REGEX REPLACE "\n([0-9a-f]+)$" "\n\"\\1\"" lines "${lines}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" lines "${lines}")
  math(EXPR size "${digits} / 2")
  string(APPEND rows "    {\"${name}\", absl::string_view(\n${lines}, ${size})},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated: the files of the live page.
#include \"server/page/page_files.h\"

namespace reprise {

absl::Span<const PageFile> PageFiles() {
  static constexpr PageFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace reprise
")
