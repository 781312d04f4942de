# cmake -DSOURCE_DIR=... -DOUTPUT=... -P CompilerDigest.cmake
#
# Writes the source that defines kCompilerDigest (runtime/recipe/compiler_digest.h): a digest of the
# files under COMPILER_FOLDERS, whatever their order and the place of the checkout.
cmake_minimum_required(VERSION 3.25)

set(COMPILER_FOLDERS graph ops passes memory device recipe)
set(all "")
foreach(folder ${COMPILER_FOLDERS})
  file(GLOB_RECURSE sources RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/runtime/${folder}/*.cc
    ${SOURCE_DIR}/runtime/${folder}/*.h)
  list(SORT sources)
  foreach(source ${sources})
    file(SHA256 ${SOURCE_DIR}/${source} digest)
    string(APPEND all "${source} ${digest}\n")
  endforeach()
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
set(source "#include \"runtime/recipe/compiler_digest.h\"

namespace reprise {
const char kCompilerDigest[] = \"${digest}\";
}
")
# One that is the same already keeps its time.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${source}")
